package logberg.kafkatests;

/** A test asks for something that a controller outside this JVM can't have. The message says what. */
public class NotOnLogbergException extends RuntimeException {
    public NotOnLogbergException(String what) {
        super(what);
    }
}
