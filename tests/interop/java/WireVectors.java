import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Compares messages with Kafka's own generated classes.
 *
 * Reads vectors, one JSON object a line: {name, version, hex, value}. The value is in the form that
 * Kafka's converters take; the hex is what somebody else's codec made of it. Answers each with a line
 * {name, version, fault}, where fault is null when
 *   - Kafka writes the same bytes from the same value, and
 *   - Kafka reads those bytes to the end, as that value, and would write them again,
 * and a sentence otherwise. With the argument "list", prints {name, lowest, highest} for each name that it is given, a line each.
 */
public final class WireVectors {
    private static final List<String> PACKAGES = List.of(
        "org.apache.kafka.common.message.",
        "org.apache.kafka.common.metadata.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
        "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.raft.generated.",
        "org.apache.kafka.server.log.remote.metadata.storage.generated.");
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws IOException {
        boolean listing = arguments.length > 0 && arguments[0].equals("list");
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                if (!line.isBlank()) {
                    out.println(JSON.writeValueAsString(listing ? versionsOf(line.strip()) : answer(JSON.readTree(line))));
                }
            }
        }
        out.flush();
    }

    private static ObjectNode versionsOf(String name) {
        ObjectNode answer = JSON.createObjectNode().put("name", name);
        try {
            Message message = (Message) find(name).getDeclaredConstructor().newInstance();
            return answer.put("lowest", message.lowestSupportedVersion()).put("highest", message.highestSupportedVersion());
        } catch (ReflectiveOperationException e) {
            return answer.putNull("lowest").putNull("highest");
        }
    }

    private static ObjectNode answer(JsonNode vector) {
        String name = vector.get("name").asText();
        short version = (short) vector.get("version").asInt();
        ObjectNode answer = JSON.createObjectNode().put("name", name).put("version", version);
        try {
            return answer.put("fault", fault(name, version, HEX.parseHex(vector.get("hex").asText()), vector.get("value")));
        } catch (InvocationTargetException e) {
            return answer.put("fault", "Kafka refuses the value: " + e.getCause());
        } catch (Exception e) {
            return answer.put("fault", e.toString());
        }
    }

    /** What is wrong with these bytes as an encoding of this value; null when nothing is. */
    private static String fault(String name, short version, byte[] ours, JsonNode value) throws Exception {
        Class<?> type = find(name);
        Method fromJson = Class.forName(type.getName() + "JsonConverter").getMethod("read", JsonNode.class, short.class);
        Message told = (Message) fromJson.invoke(null, value, version);
        if (version < told.lowestSupportedVersion() || version > told.highestSupportedVersion()) {
            return "Kafka has versions " + told.lowestSupportedVersion() + " to " + told.highestSupportedVersion();
        }
        byte[] theirs = bytes(told, version);
        if (!java.util.Arrays.equals(theirs, ours)) {
            int at = java.util.Arrays.mismatch(theirs, ours);
            return "bytes differ from byte " + at + " on: Kafka writes " + around(theirs, at) + " (" + theirs.length
                + " bytes), the vector has " + around(ours, at) + " (" + ours.length + " bytes)";
        }
        Message read = (Message) type.getDeclaredConstructor().newInstance();
        ByteBuffer source = ByteBuffer.wrap(ours);
        read.read(new ByteBufferAccessor(source), version);
        if (source.hasRemaining()) {
            return "Kafka leaves " + source.remaining() + " bytes unread";
        }
        if (!read.equals(told)) {
            return "Kafka reads " + read + " where the value is " + told;
        }
        return java.util.Arrays.equals(bytes(read, version), ours) ? null : "Kafka would write what it has read differently";
    }

    private static byte[] bytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }

    private static String around(byte[] bytes, int at) {
        int from = Math.max(0, Math.min(at, bytes.length) - 8);
        return "…" + HEX.formatHex(bytes, from, Math.min(bytes.length, at + 16)) + "…";
    }

    /** Requests, responses and headers have "Data" at the end of their class's name; records have not. */
    private static Class<?> find(String name) throws ClassNotFoundException {
        for (String prefix : PACKAGES) {
            for (String suffix : List.of("Data", "")) {
                try {
                    return Class.forName(prefix + name + suffix);
                } catch (ClassNotFoundException | NoClassDefFoundError e) {
                    continue; // in another package, then
                }
            }
        }
        throw new ClassNotFoundException("Kafka has no message " + name);
    }
}
