package jdk.crac;

/** See {@link Core}. */
public class RestoreException extends Exception {
  private static final long serialVersionUID = 1;
}
