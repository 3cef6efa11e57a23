// kafkajs as the teller of a story (../stories.py): each thing that happens is one line of JSON.
//
//   node story.js BOOTSTRAP TOPIC steady|transactions
//
// A writer and a group of two readers, named as the topic, until a line on standard input; the
// readers go on until the next one.
'use strict'

const { once } = require('node:events')
const { createInterface } = require('node:readline')
const { connected, pause } = require('./connecting')

const PARTITIONS = 3
const READERS = 2
const RECORDS = 20
const PAUSE_MS = 100
const ABORT_EVERY = 5
const REBALANCED = ['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'REBALANCE_IN_PROGRESS']

const [bootstrap, topic, what] = process.argv.slice(2)
const kafka = connected(bootstrap)
const lines = createInterface({ input: process.stdin })
const nextLine = () => once(lines, 'line')

const tell = (event, told) => console.log(JSON.stringify({ event, ...told }))

// Once its tries are used up it throws what it could not do, as the cause: its consumer then joins
// again, wherever the coordinator is by now.
const meaning = (error) => {
  const first = error.name === 'KafkaJSNumberOfRetriesExceeded' ? error.cause : error
  if (REBALANCED.includes(first.type)) return 'rebalanced'
  return first.retriable ? 'again' : 'unexpected'
}

const tellError = (who, error) =>
  tell('error', { who, meaning: meaning(error), text: `${error.name}: ${error.message}` })

const reading = async () => {
  const consumer = kafka.consumer({ groupId: topic })
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    const { error, restart } = payload
    const told = restart ? 'again' : 'unexpected'
    tell('error', { who: 'reader', meaning: told, text: `${error.name}: ${error.message}` })
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch: { partition, messages } }) => {
      for (const { offset, value } of messages) {
        tell('found', { partition, offset: Number(offset), value: value.toString() })
      }
      if (messages.length === 0) return // what was written there was aborted
      const offset = `${Number(messages.at(-1).offset) + 1}`
      try {
        await consumer.commitOffsets([{ topic, partition, offset }])
        tell('committed', { partition, offset: Number(offset) })
      } catch (wrong) {
        tellError('commit', wrong)
        throw wrong // it joins again, as it would if the commit had been its own
      }
    },
  })
  return consumer
}

const writing = async (isOver) => {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  for (let number = 0; !isOver(); number += RECORDS) {
    const values = Array.from({ length: RECORDS }, (_, n) => `${number + n}`)
    tell('written', { values })
    // One partition a call: with several, kafkajs tells of success and leaves out those whose
    // leader moves to a broker that has answered for another one already.
    const partition = (number / RECORDS) % PARTITIONS
    try {
      await producer.send({ topic, acks: -1, messages: values.map((value) => ({ value, partition })) })
      tell('acknowledged', { values })
    } catch (wrong) {
      tellError('writer', wrong)
    }
    await pause(PAUSE_MS)
  }
  await producer.disconnect()
}

const transacting = async (isOver) => {
  const settings = { transactionalId: topic, idempotent: true, maxInFlightRequests: 1 }
  const begun = async () => {
    for (;;) {
      const producer = kafka.producer(settings)
      try {
        await producer.connect()
        return producer
      } catch (wrong) {
        tellError('connecting', wrong)
        await pause(PAUSE_MS)
      }
    }
  }
  let producer = await begun()
  for (let number = 0; !isOver(); number++) {
    const values = Array.from({ length: RECORDS }, (_, n) => `${number}.${n}`)
    const ends = number % ABORT_EVERY === ABORT_EVERY - 1 ? 'abort' : 'commit'
    let transaction
    try {
      transaction = await producer.transaction()
      for (let partition = 0; partition < PARTITIONS; partition++) {
        const mine = values.filter((_, n) => n % PARTITIONS === partition)
        const messages = mine.map((value) => ({ value, partition }))
        await transaction.send({ topic, acks: -1, messages })
      }
      await transaction[ends]()
      tell(ends === 'abort' ? 'aborted' : 'acknowledged', { values })
    } catch (wrong) {
      tell('doubtful', { values })
      tellError('writer of transactions', wrong)
      const isAborted = await (transaction?.abort() ?? Promise.reject(wrong)).then(
        () => true,
        () => false
      )
      if (!isAborted) {
        await producer.disconnect().catch((error) => tellError('disconnecting', error))
        producer = await begun()
      }
    }
    await pause(PAUSE_MS)
  }
  await producer.disconnect()
}

const main = async () => {
  const readers = []
  for (let n = 0; n < READERS; n++) readers.push(await reading())
  let over = false
  const stopped = nextLine().then(() => (over = true))
  await (what === 'transactions' ? transacting : writing)(() => over)
  await stopped
  const ended = nextLine()
  tell('all written', {})
  await ended
  for (const reader of readers) await reader.disconnect()
}

main().then(
  () => process.exit(0),
  (wrong) => {
    console.error(wrong)
    process.exit(1)
  }
)
