package io.github.traceflake.otel;

import com.fasterxml.jackson.jr.ob.JSON;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Map;

/** A file of testdata, as maps and lists. */
record Vectors(Map<String, Object> json) {
  static Vectors read(String name) {
    try {
      return new Vectors(JSON.std.mapFrom(new File("../../testdata/" + name)));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  boolean has(String key) {
    return json.get(key) != null;
  }

  String text(String key) {
    return (String) json.get(key);
  }

  /** A number, which may be absent: then it is 0. */
  long number(String key) {
    return ((Number) json.getOrDefault(key, 0)).longValue();
  }

  /** A number of 64 bits in hex, which may be absent: then it is 0. */
  long hex(String key) {
    return Long.parseUnsignedLong((String) json.getOrDefault(key, "0"), 16);
  }

  @SuppressWarnings("unchecked")
  Vectors part(String key) {
    return new Vectors((Map<String, Object>) json.get(key));
  }

  @SuppressWarnings("unchecked")
  List<String> texts(String key) {
    return (List<String>) json.get(key);
  }

  @SuppressWarnings("unchecked")
  List<Vectors> parts(String key) {
    return ((List<Map<String, Object>>) json.get(key)).stream().map(Vectors::new).toList();
  }

  @Override
  public String toString() {
    return has("name") ? text("name") : json.toString();
  }
}
