package io.github.traceflake.otel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** The rows of testdata/life.json, and wrong clients for which one of them does not hold. */
class LifeTest {
  static final List<String> rows =
      Vectors.read("life.json").parts("rows").stream()
          .filter(row -> row.texts("clients").contains("java"))
          .map(row -> row.text("name"))
          .toList();

  @ParameterizedTest
  @FieldSource
  void rows(String row) throws Throwable {
    assertNotNull(Life.ROWS.get(row), "there is no test of this row");
    Life.ROWS.get(row).execute();
  }

  /** A mistake in a class: each text is replaced by the next one. */
  record Wrong(String name, String file, String... texts) {
    @Override
    public String toString() {
      return name;
    }
  }

  static final List<Wrong> wrong =
      List.of(
          new Wrong("nothing is wrong", "RandomLongs"),
          new Wrong("afterRestore does nothing", "TraceflakeIdGenerator", "RANDOM.run();", ""),
          new Wrong(
              "a restore is not noticed",
              "TraceflakeIdGenerator",
              "Restore.onRestore(RANDOM);",
              ""),
          new Wrong(
              "span IDs take a lock",
              "TraceflakeIdGenerator",
              "public String generateSpanId",
              "public synchronized String generateSpanId"),
          new Wrong("trace IDs take a lock", "TraceflakeIdGenerator", "long nextClear()",
              "synchronized long nextClear()"),
          new Wrong("numbers take a lock", "RandomLongs", "public long getAsLong",
              "public synchronized long getAsLong"),
          new Wrong("blocks take a lock", "RandomLongs", "private Block draw",
              "private synchronized Block draw"),
          new Wrong(
              "the strong source",
              "RandomLongs",
              "this(new SecureRandom());",
              "this(strong());",
              "  /** Discards the",
              "  static Random strong() {try {return SecureRandom.getInstanceStrong();}"
                  + " catch (GeneralSecurityException e) {throw new RuntimeException(e);}}\n"
                  + "  /** Discards the"),
          new Wrong("a source that fails", "RandomLongs", "catch (RuntimeException e)",
              "catch (IllegalStateException e)"),
          new Wrong("the clock is held for 3 s", "TraceflakeIdGenerator", "2000L", "3000L"),
          new Wrong("the clock is held for 1 s", "TraceflakeIdGenerator", "2000L", "1000L"),
          new Wrong("upper case of the locale", "XTraceIdPropagator", "toUpperCase(Locale.ROOT)",
              "toUpperCase()"),
          new Wrong("an unknown option is ignored", "XTraceIdPropagator", "!OPTIONS.contains(name)",
              "false"),
          new Wrong("empty settings are set", "XTraceIdPropagator",
              "value != null && !value.trim().isEmpty()", "value != null"),
          new Wrong("yes is false", "XTraceIdPropagator",
              "oneOf(option, value, \"TRUE\", \"FALSE\").equals(\"TRUE\")",
              "Boolean.parseBoolean(value)"));

  @ParameterizedTest
  @FieldSource
  void wrong(Wrong wrong, @TempDir Path dir) throws Exception {
    String name = "io/github/traceflake/otel/" + wrong.file + ".java";
    String source = Files.readString(Path.of("src/main/java", name));
    for (int i = 0; i < wrong.texts.length; i += 2) {
      assertTrue(source.contains(wrong.texts[i]), () -> "nothing is replaced");
      source = source.replace(wrong.texts[i], wrong.texts[i + 1]);
    }
    Path file = Files.writeString(dir.resolve(wrong.file + ".java"), source);
    String classPath = System.getProperty("java.class.path");
    var options = List.of("-proc:none", "-nowarn", "-cp", classPath, "-d", dir.toString());
    List<String> arguments = new ArrayList<>(options);
    arguments.add(file.toString());
    int compiled =
        ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments.toArray(String[]::new));
    assertEquals(0, compiled);

    String java = ProcessHandle.current().info().command().orElseThrow();
    Process process =
        new ProcessBuilder(java, "-cp", dir + File.pathSeparator + classPath, Life.class.getName())
            .redirectErrorStream(true)
            .start();
    String output = new String(process.getInputStream().readAllBytes());
    assertEquals(wrong.texts.length == 0 ? 0 : 1, process.waitFor(), output);
  }
}
