// kafkajs as an application uses it. Each check prints one line of JSON: {name, ok, why}.
//
//   node client.js BOOTSTRAP     administration, writing, groups, transactions
'use strict'

const { CompressionTypes } = require('kafkajs')
const { connected, pause } = require('./connecting')

const PATIENCE_MS = 60_000
const PARTITIONS = 3

const [bootstrap] = process.argv.slice(2)
const kafka = connected(bootstrap)
const unique = Date.now().toString(36)
let names = 0
const named = (name) => `kafkajs-${name}-${unique}-${names++}`

const expect = (holds, told) => {
  if (!holds) throw new Error(told)
}

const same = (found, wanted) =>
  expect(
    JSON.stringify(found) === JSON.stringify(wanted),
    `${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`
  )

const within = async (ms, condition, told) => {
  const deadline = Date.now() + ms
  while (!(await condition())) {
    expect(Date.now() < deadline, told())
    await pause(50)
  }
}

const withClient = async (client, use) => {
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.disconnect()
  }
}

const withAdmin = (use) => withClient(kafka.admin(), use)

const newTopic = async (name) => {
  const topic = named(name)
  await withAdmin((admin) =>
    admin.createTopics({ topics: [{ topic, numPartitions: PARTITIONS, replicationFactor: 3 }] })
  )
  await pause(2_000) // Kafka's brokers do not all know of it yet, and kafkajs gives up on them
  return topic
}

/** What a group reads of a topic until enough is there; `seen` grows meanwhile. */
const reading = async (topic, groupId, seen, settings = {}) => {
  const consumer = kafka.consumer({ groupId, ...settings })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ partition, message }) => {
      seen.push({ partition, offset: message.offset, value: message.value.toString() })
    },
  })
  return consumer
}

const readAll = async (topic, wanted, settings) => {
  const seen = []
  const consumer = await reading(topic, named('reader'), seen, settings)
  try {
    await within(PATIENCE_MS, () => seen.length >= wanted, () => `${seen.length} of ${wanted} read`)
    await pause(300) // what should not come had time to
  } finally {
    await consumer.disconnect()
  }
  return seen.map((each) => each.value).sort()
}

const CHECKS = {
  'admin: topics, settings, offsets, cluster': async () => {
    const topic = await newTopic('admin')
    await withAdmin(async (admin) => {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
      same(topics[0].partitions.length, PARTITIONS)
      same(topics[0].partitions[0].replicas.length, 3)
      await admin.createPartitions({ topicPartitions: [{ topic, count: PARTITIONS + 1 }] })
      const configEntries = [{ name: 'retention.ms', value: '123456' }]
      await admin.alterConfigs({ resources: [{ type: 2, name: topic, configEntries }] })
      const asked = { type: 2, name: topic, configNames: ['retention.ms'] }
      const isChanged = async () => {
        const told = await admin.describeConfigs({ resources: [asked], includeSynonyms: false })
        return told.resources[0].configEntries[0].configValue === '123456'
      }
      await within(5_000, isChanged, () => 'retention.ms did not change') // any broker may answer
      same((await admin.fetchTopicOffsets(topic)).length, PARTITIONS + 1)
      same((await admin.describeCluster()).brokers.length, 3)
      await admin.deleteTopics({ topics: [topic] })
      expect(!(await admin.listTopics()).includes(topic), 'a deleted topic is listed')
    })
  },

  'what is written is read, with gzip and with headers': async () => {
    const topic = await newTopic('plain')
    const values = Array.from({ length: 100 }, (_, number) => `${number}`).sort()
    await withClient(kafka.producer({ idempotent: true }), (producer) =>
      producer.send({
        topic,
        acks: -1,
        compression: CompressionTypes.GZIP,
        messages: values.map((value) => ({ key: value, value, headers: { h: 'x' } })),
      })
    )
    same(await readAll(topic, values.length), values)
  },

  'a group shares partitions, keeps its commits, can be described and deleted': async () => {
    const topic = await newTopic('group')
    const groupId = named('group')
    const messages = Array.from({ length: 60 }, (_, n) => ({ value: `${n}`, partition: n % 3 }))
    await withClient(kafka.producer(), (producer) => producer.send({ topic, messages }))
    const [first, second] = [[], []]
    const members = [
      await reading(topic, groupId, first),
      await reading(topic, groupId, second),
    ]
    await withAdmin(async (admin) => {
      await within(
        PATIENCE_MS,
        async () => {
          const { groups } = await admin.describeGroups([groupId])
          return groups[0].state === 'Stable' && groups[0].members.length === 2
        },
        () => 'the group did not become stable with two members'
      )
      const all = () => new Set([...first, ...second].map((each) => each.value))
      await within(PATIENCE_MS, () => all().size === 60, () => `${all().size} of 60 read`)
      for (const member of members) await member.disconnect()
      const offsets = await admin.fetchOffsets({ groupId, topics: [topic] })
      same(offsets[0].partitions.map((each) => each.offset).sort(), ['20', '20', '20'])
      await admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '5' }] })
      await admin.deleteGroups([groupId])
    })
  },

  'a committed transaction is read and an aborted one is not': async () => {
    const topic = await newTopic('txn')
    const settings = { transactionalId: named('txn'), idempotent: true, maxInFlightRequests: 1 }
    await withClient(kafka.producer(settings), async (producer) => {
      for (const value of ['committed', 'aborted', 'committed too']) {
        const transaction = await producer.transaction()
        await transaction.send({ topic, messages: [{ value, partition: 0 }] })
        await (value === 'aborted' ? transaction.abort() : transaction.commit())
      }
    })
    same(await readAll(topic, 2, { readUncommitted: false }), ['committed', 'committed too'])
    same((await readAll(topic, 3, { readUncommitted: true })).length, 3)
  },

  'offsets are committed in a transaction': async () => {
    const topic = await newTopic('eos')
    const groupId = named('eos')
    const settings = { transactionalId: named('eos'), idempotent: true, maxInFlightRequests: 1 }
    await withClient(kafka.producer(settings), async (producer) => {
      for (const [offset, ends] of [['7', 'commit'], ['9', 'abort']]) {
        const transaction = await producer.transaction()
        await transaction.send({ topic, messages: [{ value: offset, partition: 0 }] })
        const partitions = [{ partition: 0, offset }]
        await transaction.sendOffsets({ consumerGroupId: groupId, topics: [{ topic, partitions }] })
        await transaction[ends]()
      }
    })
    await withAdmin(async (admin) => {
      const offsets = await admin.fetchOffsets({ groupId, topics: [topic] })
      same(offsets[0].partitions.find((each) => each.partition === 0).offset, '7')
    })
  },
}

const judge = async (checks) => {
  for (const [name, check] of Object.entries(checks)) {
    let why = ''
    try {
      await check()
    } catch (wrong) {
      why = `${wrong.name}: ${wrong.message}`
    }
    console.log(JSON.stringify({ name, ok: why === '', why }))
  }
}

judge(CHECKS).then(
  () => process.exit(0),
  (wrong) => {
    console.error(wrong)
    process.exit(1)
  }
)
