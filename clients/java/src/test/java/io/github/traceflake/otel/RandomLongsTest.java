package io.github.traceflake.otel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import javax.crypto.Cipher;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.Test;

class RandomLongsTest {
  /** Blocks of 16 numbers and more, each twice as large as the one before. */
  @Test
  void handsOutEachNumberOfItsSourceOnce() {
    Random expected = new Random(1);
    List<Long> want = new ArrayList<>();
    for (int size = 16; size < 1024; size *= 2) {
      byte[] bytes = new byte[size * Long.BYTES];
      expected.nextBytes(bytes);
      ByteBuffer numbers = ByteBuffer.wrap(bytes);
      IntStream.range(0, size).forEach(i -> want.add(numbers.getLong()));
    }
    RandomLongs numbers = new RandomLongs(new Random(1));
    assertEquals(want, LongStream.generate(numbers).limit(want.size()).boxed().toList());
  }

  /** A key for each large block, from the source. Counter mode, made of single blocks. */
  @Test
  void encryptsLargeBlocks() throws Exception {
    var keys = new Random(1);
    RandomLongs numbers = new RandomLongs(keys);
    var expected = new Random(1);
    expected.nextBytes(new byte[1008 * Long.BYTES]);
    LongStream.generate(numbers).limit(1008).sum();
    for (int block = 0; block < 2; block++) {
      byte[] key = new byte[16];
      expected.nextBytes(key);
      Cipher aes = Cipher.getInstance("AES/ECB/NoPadding");
      aes.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(key, "AES"));
      for (long counter = 0; counter < 512; counter++) {
        ByteBuffer input = ByteBuffer.allocate(16).putLong(0).putLong(counter);
        ByteBuffer want = ByteBuffer.wrap(aes.doFinal(input.array()));
        assertEquals(want.getLong(), numbers.getAsLong());
        assertEquals(want.getLong(), numbers.getAsLong());
      }
    }
  }

  /** A source that fills with a byte. */
  private static Random filler(byte[] with) {
    return new Random() {
      private static final long serialVersionUID = 1;

      @Override
      public void nextBytes(byte[] bytes) {
        Arrays.fill(bytes, with[0]);
      }
    };
  }

  @Test
  void copiesDifferOnceTheyDiscard() {
    byte[] drawn = new byte[1];
    RandomLongs numbers = new RandomLongs(filler(drawn));
    assertEquals(0, numbers.getAsLong());
    drawn[0] = -1; // as in a copy
    assertEquals(0, numbers.getAsLong());
    numbers.run();
    assertEquals(-1, numbers.getAsLong());
  }

  @Test
  void theSourceIsSecure() throws Exception {
    Field source = RandomLongs.class.getDeclaredField("source");
    source.setAccessible(true);
    assertInstanceOf(SecureRandom.class, source.get(new RandomLongs()));
  }
}
