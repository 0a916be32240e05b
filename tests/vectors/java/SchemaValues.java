import java.math.BigDecimal;
import java.sql.Time;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.Date;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.avro.reflect.AvroSchema;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.SchemaDefinition;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;
import org.apache.pulsar.common.schema.SchemaInfo;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/** Lets the Java client's schemas write values. A line in, as "INT32 -5"; the schema and the bytes out, as JSON. */
public final class SchemaValues {
    public enum Status { LATE, CANCELLED }

    public static class Airport {
        public String code;
        public double latitude;
    }

    /** What both formats can hold. */
    public static class Flight {
        public String carrier;
        public int delay;
        public Integer gate;
        public long distance;
        public float share;
        public double speed;
        public boolean late;
        public byte[] tail;
        public List<String> legs;
        public Map<String, Integer> seats;
        public Status status;
        public Airport origin;
        public Airport destination;
        public List<Airport> stops;
    }

    /** What has a logical type in AVRO. */
    public static class Ticket {
        public LocalDate day;
        public Instant at;
        public LocalTime boarding;
        @AvroSchema("{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":9,\"scale\":2}")
        public BigDecimal fare;
    }

    private static Flight flight() {
        Flight flight = new Flight();
        flight.carrier = "größer";
        flight.delay = -7;
        flight.distance = 1L << 40;
        flight.share = 0.5f;
        flight.speed = 0.1;
        flight.late = true;
        flight.tail = new byte[] {0, (byte) 0xff};
        flight.legs = List.of("JFK", "");
        flight.seats = new TreeMap<>(Map.of("economy", 120, "first", 8));
        flight.status = Status.LATE;
        flight.origin = new Airport();
        flight.origin.code = "JFK";
        flight.origin.latitude = 40.6;
        flight.stops = List.of(flight.origin);
        return flight;
    }

    private static Ticket ticket() {
        Ticket ticket = new Ticket();
        ticket.day = LocalDate.parse("2013-01-01");
        ticket.at = Instant.parse("2013-01-01T10:15:30.123456Z");
        ticket.boarding = LocalTime.parse("09:45:00.5");
        ticket.fare = new BigDecimal("-123.45");
        return ticket;
    }

    public static Map<String, Object> written(String line) {
        String[] words = line.split(" ", 2);
        String text = words.length > 1 ? words[1] : "";
        return switch (words[0]) {
            case "STRING" -> by(Schema.STRING, text);
            case "BYTES" -> by(Schema.BYTES, HexFormat.of().parseHex(text));
            case "BOOLEAN" -> by(Schema.BOOL, Boolean.valueOf(text));
            case "INT8" -> by(Schema.INT8, Byte.valueOf(text));
            case "INT16" -> by(Schema.INT16, Short.valueOf(text));
            case "INT32" -> by(Schema.INT32, Integer.valueOf(text));
            case "INT64" -> by(Schema.INT64, Long.valueOf(text));
            case "FLOAT" -> by(Schema.FLOAT, Float.valueOf(text));
            case "DOUBLE" -> by(Schema.DOUBLE, Double.valueOf(text));
            case "DATE" -> by(Schema.DATE, Date.from(Instant.parse(text)));
            case "TIME" -> by(Schema.TIME, new Time(Long.parseLong(text)));
            case "TIMESTAMP" -> by(Schema.TIMESTAMP, Timestamp.from(Instant.parse(text)));
            case "INSTANT" -> by(Schema.INSTANT, Instant.parse(text));
            case "LOCAL_DATE" -> by(Schema.LOCAL_DATE, LocalDate.parse(text));
            case "LOCAL_TIME" -> by(Schema.LOCAL_TIME, LocalTime.parse(text));
            case "LOCAL_DATE_TIME" -> by(Schema.LOCAL_DATE_TIME, LocalDateTime.parse(text));
            case "JSON" -> by(Schema.JSON(Flight.class), flight());
            case "AVRO" -> by(Schema.AVRO(Flight.class), flight());
            case "TICKET" -> by(Schema.AVRO(SchemaDefinition.<Ticket>builder().withPojo(Ticket.class)
                    .withJSR310ConversionEnabled(true).build()), ticket());
            case "KEY_VALUE" -> by(Schema.KeyValue(Schema.STRING, Schema.INT32, KeyValueEncodingType.valueOf(text)),
                    new KeyValue<>("k", 7));
            case "NULL_KEY" -> by(Schema.KeyValue(Schema.STRING, Schema.INT32, KeyValueEncodingType.INLINE),
                    new KeyValue<>(null, 7));
            default -> throw new IllegalArgumentException(line);
        };
    }

    private static <T> Map<String, Object> by(Schema<T> schema, T value) {
        SchemaInfo info = schema.getSchemaInfo();
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("kind", info.getType().name());
        answer.put("definition", HexFormat.of().formatHex(info.getSchema()));
        answer.put("properties", info.getProperties());
        answer.put("value", HexFormat.of().formatHex(schema.encode(value)));
        return answer;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(new ObjectMapper().writeValueAsString(written(line)));
        }
    }
}
