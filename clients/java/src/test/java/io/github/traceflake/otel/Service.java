package io.github.traceflake.otel;

import com.sun.net.httpserver.HttpServer;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;

/**
 * An HTTP service that the agent instruments. For each argument, a list of headers, it gets a
 * request, calls another one, and prints the headers of that call.
 */
final class Service {
  public static void main(String[] args) throws Exception {
    var server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    int port = server.getAddress().getPort();
    server.createContext(
        "/called",
        exchange -> {
          exchange.getRequestHeaders().forEach((k, v) -> System.out.println(k + ": " + v.get(0)));
          exchange.sendResponseHeaders(204, -1);
          exchange.close();
        });
    server.createContext(
        "/",
        exchange -> {
          var url = URI.create("http://127.0.0.1:" + port + "/called").toURL();
          int status = ((HttpURLConnection) url.openConnection()).getResponseCode();
          exchange.sendResponseHeaders(status, -1);
          exchange.close();
        });
    server.setExecutor(java.util.concurrent.Executors.newCachedThreadPool());
    server.start();
    for (String headers : args) {
      // A socket, as the agent would trace an HTTP client.
      try (var socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
        String request = "GET / HTTP/1.0\r\nHost: localhost\r\n" + headers + "\r\n";
        socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
        socket.getInputStream().readAllBytes();
      }
    }
    System.exit(0);
  }
}
