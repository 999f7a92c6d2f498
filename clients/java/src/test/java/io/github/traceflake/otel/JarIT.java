package io.github.traceflake.otel;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The built jar, with the agent, the SDK's autoconfiguration, and both. */
class JarIT {
  static final String JAR = System.getProperty("jar");
  static final String AGENT = "-javaagent:" + System.getProperty("agent");
  static final String EXTENSION = "-Dotel.javaagent.extensions=" + JAR;
  static final String TEST_CLASSES = "target/test-classes";
  static final List<String> SDK =
      Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
          .filter(path -> path.contains("opentelemetry"))
          .toList();

  @TempDir Path dir;

  @Test
  void agent() throws Exception {
    assertTraced(run(Service.class, List.of(TEST_CLASSES), AGENT, EXTENSION));
  }

  @Test
  void agentWithAConfigurationFile() throws Exception {
    Path config = dir.resolve("otel.yaml");
    Files.writeString(
        config,
        """
        file_format: "1.2"
        propagator:
          composite:
            - tracecontext:
        tracer_provider:
          processors: # without one, the SDK does not trace
            - simple:
                exporter:
                  console:
          id_generator:
            traceflake:
        """);
    String option = "-Dotel.config.file=" + config;
    assertTraced(run(Service.class, List.of(TEST_CLASSES), AGENT, EXTENSION, option));
  }

  @Test
  void autoconfiguration() throws Exception {
    assertTraced(run(Autoconfigured.class, classPath()));
  }

  @Test
  void autoconfigurationAndAgent() throws Exception {
    assertTraced(run(Autoconfigured.class, classPath(), AGENT, EXTENSION));
  }

  @Test
  void autoconfigurationWithoutTheJar() throws Exception {
    List<String> classPath = classPath();
    classPath.remove(JAR);
    List<String> headers = run(Autoconfigured.class, classPath);
    assertEquals(2, headers.size());
    assertThrows(AssertionError.class, () -> assertTraced(headers));
  }

  @Test
  void contents() throws Exception {
    try (JarFile jar = new JarFile(JAR)) {
      assertEquals(
          "io.github.traceflake.otel",
          jar.getManifest().getMainAttributes().getValue("Automatic-Module-Name"));
      for (var entry : jar.stream().filter(e -> !e.isDirectory()).toList()) {
        String name = entry.getName();
        assertTrue(
            name.startsWith("META-INF/") || name.startsWith("io/github/traceflake/otel/"), name);
        if (name.endsWith(".class")) {
          byte[] bytes = jar.getInputStream(entry).readNBytes(8);
          assertEquals(52, bytes[7], name + " is not for Java 8");
        }
      }
    }
  }

  private static List<String> classPath() {
    List<String> path = new ArrayList<>(SDK);
    path.add(JAR);
    path.add(TEST_CLASSES);
    return path;
  }

  /** Runs a program that gets two requests, and returns the headers that it sends for them. */
  private List<String> run(Class<?> main, List<String> classPath, String... options)
      throws Exception {
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(List.of("-Dotel.metrics.exporter=none", "-Dotel.logs.exporter=none"));
    command.add("-Dotel.traces.exporter=console");
    command.addAll(List.of(options));
    command.addAll(List.of("-cp", String.join(File.pathSeparator, classPath), main.getName()));
    command.addAll(List.of("A: 1\r\n", "A: 2\r\n"));
    Path out = dir.resolve("out");
    Path err = dir.resolve("err");
    var builder = new ProcessBuilder(command).redirectOutput(out.toFile());
    Process process = builder.redirectError(err.toFile()).start();
    assertTrue(process.waitFor(60, TimeUnit.SECONDS), "the program does not end");
    String log = Files.readString(err, UTF_8);
    assertEquals(0, process.exitValue(), log);
    assertFalse(log.contains("ERROR") || log.contains("Exception"), log);
    return Files.readAllLines(out, UTF_8);
  }

  /** Two traces, each with a new ID whose time is now, and with the random flag. */
  private static void assertTraced(List<String> headers) {
    List<String> ids =
        headers.stream()
            .filter(header -> header.toLowerCase().startsWith("traceparent: 00-"))
            .peek(header -> assertTrue(header.endsWith("-03"), header))
            .map(header -> header.substring(16, 48))
            .toList();
    assertEquals(2, ids.size(), () -> String.join("\n", headers));
    assertTrue(ids.get(0).compareTo(ids.get(1)) < 0, ids::toString);
    for (String id : ids) {
      long time = (Long.parseUnsignedLong(id.substring(0, 16), 16) >>> 23) + 1577836800000L;
      long age = System.currentTimeMillis() - time;
      assertTrue(0 <= age && age < 60_000, "the time of " + id);
    }
  }
}
