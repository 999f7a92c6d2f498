package jdk.crac;

/** See {@link Core}. */
public class CheckpointException extends Exception {
  private static final long serialVersionUID = 1;
}
