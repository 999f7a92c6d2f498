package io.github.traceflake.otel;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.Random;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.LongSupplier;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * Random numbers from {@link SecureRandom}, which is drawn from in blocks because a single draw
 * takes a lock and costs many times more. A number is taken from a block by one atomic increment.
 * The blocks are not bound to threads: a virtual thread is often too short-lived for its own.
 */
final class RandomLongs implements LongSupplier, Runnable {
  private static final int STRIPES = 16; // a power of two; fewer threads meet at one counter
  private static final int FIRST_SIZE = 16; // of a block; the next ones double
  private static final int SIZE = 1024;

  private final AtomicReferenceArray<Block> blocks = new AtomicReferenceArray<>(STRIPES);
  private final Random source;

  RandomLongs() {
    this(new SecureRandom());
  }

  RandomLongs(Random source) {
    this.source = source;
    run();
  }

  /** Discards the numbers that are ready, after a restore. */
  @Override
  public void run() {
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
    Block fresh = draw(Math.min(Math.max(FIRST_SIZE, 2 * block.numbers.length), SIZE));
    long first = fresh.numbers[fresh.next.getAndIncrement()];
    blocks.compareAndSet(stripe, block, fresh); // if another thread was faster, its block stays
    return first;
  }

  private Block draw(int size) {
    byte[] bytes = new byte[size * Long.BYTES];
    try {
      if (size == SIZE) {
        Aes.fill(bytes, source);
      } else {
        source.nextBytes(bytes);
      }
    } catch (RuntimeException e) { // the host must not fail for an ID
      ThreadLocalRandom.current().nextBytes(bytes);
    }
    Block block = new Block(size);
    ByteBuffer.wrap(bytes).asLongBuffer().get(block.numbers);
    return block;
  }

  /** AES in counter mode, in a class of its own, which is not loaded for the first IDs. */
  private static final class Aes {
    /** Fills bytes, which are zero, in a fraction of the time of SecureRandom. */
    static void fill(byte[] bytes, Random keys) {
      byte[] key = new byte[16];
      keys.nextBytes(key);
      try {
        Cipher aes = Cipher.getInstance("AES/CTR/NoPadding");
        IvParameterSpec start = new IvParameterSpec(new byte[16]);
        aes.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(key, "AES"), start);
        aes.doFinal(bytes, 0, bytes.length, bytes);
      } catch (GeneralSecurityException | RuntimeException e) { // this platform has no AES
        keys.nextBytes(bytes);
      }
    }
  }

  /** Numbers that are handed out once each. */
  private static final class Block {
    final long[] numbers;
    final AtomicInteger next = new AtomicInteger();

    Block(int size) {
      numbers = new long[size];
    }
  }
}
