// What every program here begins with: kafkajs, patient enough for a broker that is away.
'use strict'

const { Kafka, logLevel } = require('kafkajs')

const connected = (bootstrap) =>
  new Kafka({
    clientId: 'interop',
    brokers: bootstrap.split(','),
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 100, maxRetryTime: 1000, retries: 100 },
  })

const pause = (ms) => new Promise((done) => setTimeout(done, ms))

module.exports = { connected, pause }
