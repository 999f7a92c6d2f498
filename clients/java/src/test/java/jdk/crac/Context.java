package jdk.crac;

/** See {@link Core}. */
public abstract class Context<R extends Resource> implements Resource {
  public abstract void register(R resource);
}
