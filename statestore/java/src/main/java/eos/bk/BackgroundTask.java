package eos.bk;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a thread does beside callers. Whatever it throws is logged, and its thread goes on: an executor never again runs
 * a repeated task that threw, be it only for a moment without memory, and tells nobody.
 *
 * @param onFailure what follows from a failure, for the log
 */
record BackgroundTask(String onFailure, Body body) implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(BackgroundTask.class);

    /** What is done. */
    interface Body {
        void run() throws Exception;
    }

    @Override
    public void run() {
        try {
            body.run();
        } catch (Throwable e) {
            try {
                LOG.warn("{}: {}", onFailure, e.toString());
            } catch (Throwable untold) {
                // Memory that lacks for the words may be there for the next round.
            }
        }
    }
}
