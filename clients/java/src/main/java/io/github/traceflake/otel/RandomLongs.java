package io.github.traceflake.otel;

import java.nio.ByteBuffer;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.Random;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.LongSupplier;

/**
 * Random numbers from {@link SecureRandom}, which is drawn from in blocks because a single draw
 * takes a lock and costs many times more. A number is taken from a block by one atomic increment.
 * The blocks are not bound to threads: a virtual thread is often too short-lived for its own.
 */
final class RandomLongs implements LongSupplier {
  private static final int STRIPES = 16; // a power of two; fewer threads meet at one counter
  private static final int SEED_BYTES = 55; // of Hash_DRBG

  private final AtomicReferenceArray<Block> blocks = new AtomicReferenceArray<>(STRIPES);
  private final Random source;
  private final SecureRandom fast; // or null

  RandomLongs() {
    this(new SecureRandom(), drbg());
  }

  RandomLongs(Random source, SecureRandom fast) {
    this.source = source;
    this.fast = fast;
    discard();
  }

  /**
   * Returns a source that takes a third of the time of the default one on Linux, which also reads
   * the kernel's numbers, or null in Java 8.
   */
  static SecureRandom drbg() {
    try {
      return SecureRandom.getInstance("DRBG");
    } catch (NoSuchAlgorithmException e) {
      return null;
    }
  }

  /** Makes the next numbers come from new blocks. */
  void discard() {
    for (int i = 0; i < STRIPES; i++) {
      blocks.set(i, new Block(0));
    }
  }

  @Override
  @SuppressWarnings("deprecation") // threadId() is newer than Java 8
  public long getAsLong() {
    int stripe = (int) Thread.currentThread().getId() & STRIPES - 1;
    Block block = blocks.get(stripe);
    int i = block.next.getAndIncrement();
    if (i < block.numbers.length) {
      return block.numbers[i];
    }
    Block fresh = draw();
    long first = fresh.numbers[fresh.next.getAndIncrement()];
    blocks.compareAndSet(stripe, block, fresh); // if another thread was faster, its block stays
    return first;
  }

  private Block draw() {
    byte[] bytes = new byte[Block.SIZE * Long.BYTES];
    try {
      if (fast == null) {
        source.nextBytes(bytes);
      } else {
        // With a new seed for each block the numbers of copies of this process diverge.
        byte[] seed = new byte[SEED_BYTES];
        source.nextBytes(seed);
        fast.setSeed(seed);
        fast.nextBytes(bytes);
      }
    } catch (RuntimeException e) { // the host must not fail for a lack of IDs
      ThreadLocalRandom.current().nextBytes(bytes);
    }
    Block block = new Block(Block.SIZE);
    ByteBuffer.wrap(bytes).asLongBuffer().get(block.numbers);
    return block;
  }

  /** Numbers that are handed out once each. */
  private static final class Block {
    static final int SIZE = 512;

    final long[] numbers;
    final AtomicInteger next = new AtomicInteger();

    Block(int size) {
      numbers = new long[size];
    }
  }
}
