import org.apache.bookkeeper.mledger.Entry;
import org.apache.pulsar.broker.service.plugin.EntryFilter;
import org.apache.pulsar.broker.service.plugin.FilterContext;
import org.apache.pulsar.common.api.proto.KeyValue;

/** A broker's entry filter. It rejects each entry whose property "reject" is "yes". */
public final class RejectingFilter implements EntryFilter {
    @Override
    public FilterResult filterEntry(Entry entry, FilterContext context) {
        if (context.getMsgMetadata() != null) {
            for (KeyValue property : context.getMsgMetadata().getPropertiesList()) {
                if (property.getKey().equals("reject") && property.getValue().equals("yes")) {
                    return FilterResult.REJECT;
                }
            }
        }
        return FilterResult.ACCEPT;
    }

    @Override
    public void close() {}
}
