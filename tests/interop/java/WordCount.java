import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts words, exactly once: lines of one topic, every new count of a word to another.
 *
 * <p>Nothing is cached, so that each word that is read gives one record: the counts of a word must
 * come as 1, 2, 3, ... without a gap and without a repetition. A thread that dies is replaced, as
 * applications do, and told of: Streams is said to bear brokers that go away.
 */
public final class WordCount {
    private WordCount() {}

    public static void main(String[] args) {
        String bootstrap = args[0];
        String name = args[1];
        String lines = args[2];
        String counts = args[3];
        Path state = Path.of(args[4]);

        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, name);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 3);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        settings.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6_000);
        settings.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 1_000);

        StreamsBuilder builder = new StreamsBuilder();
        KStream<byte[], String> read =
            builder.stream(lines, Consumed.with(Serdes.ByteArray(), Serdes.String()));
        read.flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts"))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(counts, Produced.with(Serdes.String(), Serdes.String()));

        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(wrong -> {
            System.out.println("A thread died of " + wrong + ", caused by " + wrong.getCause());
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((now, before) -> System.out.println(now));
        Runtime.getRuntime().addShutdownHook(
            new Thread(() -> streams.close(Duration.ofSeconds(20))));
        streams.start();
    }
}
