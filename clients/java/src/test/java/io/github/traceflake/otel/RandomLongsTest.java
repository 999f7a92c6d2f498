package io.github.traceflake.otel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import java.lang.reflect.Field;
import java.security.ProviderException;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class RandomLongsTest {
  @Test
  void handsOutEachNumberOfItsSourceOnce() {
    Random expected = new Random(1);
    List<Long> want = new ArrayList<>();
    for (int block = 0; block < 3; block++) {
      byte[] bytes = new byte[512 * Long.BYTES];
      expected.nextBytes(bytes);
      LongStream.range(0, 512)
          .map(i -> java.nio.ByteBuffer.wrap(bytes).getLong((int) i * Long.BYTES))
          .forEach(want::add);
    }
    RandomLongs numbers = new RandomLongs(new Random(1), null);
    assertEquals(want, LongStream.generate(numbers).limit(want.size()).boxed().toList());
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
    RandomLongs numbers = new RandomLongs(filler(drawn), null);
    assertEquals(0, numbers.getAsLong());
    drawn[0] = -1; // as in a copy
    assertEquals(0, numbers.getAsLong());
    numbers.discard();
    assertEquals(-1, numbers.getAsLong());
  }

  /** A copy of a process has the same state, but the kernel gives it other numbers. */
  @Test
  void eachBlockHasANewSeed() {
    List<String> calls = new ArrayList<>();
    SecureRandom fast =
        new SecureRandom() {
          private static final long serialVersionUID = 1;

          @Override
          public void setSeed(byte[] seed) {
            calls.add("seed " + seed[0] + " of " + seed.length);
          }

          @Override
          public void nextBytes(byte[] bytes) {
            calls.add("draw");
          }
        };
    byte[] drawn = {1};
    RandomLongs numbers = new RandomLongs(filler(drawn), fast);
    LongStream.generate(numbers).limit(512).sum();
    drawn[0] = 2;
    numbers.getAsLong();
    assertEquals(List.of("seed 1 of 55", "draw", "seed 2 of 55", "draw"), calls);
  }

  @Test
  void theSourceIsSecure() throws Exception {
    Field source = RandomLongs.class.getDeclaredField("source");
    source.setAccessible(true);
    assertInstanceOf(SecureRandom.class, source.get(new RandomLongs()));
  }

  @Test
  void aSourceThatFailsIsReplaced() {
    RandomLongs numbers =
        new RandomLongs(
            new Random() {
              private static final long serialVersionUID = 1;

              @Override
              public void nextBytes(byte[] bytes) {
                throw new ProviderException("no entropy");
              }
            },
            null);
    assertEquals(1000, LongStream.generate(numbers).limit(1000).distinct().count());
  }
}
