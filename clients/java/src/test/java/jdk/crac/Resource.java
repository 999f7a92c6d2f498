package jdk.crac;

/** See {@link Core}. */
public interface Resource {
  void beforeCheckpoint(Context<? extends Resource> context) throws Exception;

  void afterRestore(Context<? extends Resource> context) throws Exception;
}
