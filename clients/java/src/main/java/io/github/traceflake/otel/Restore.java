package io.github.traceflake.otel;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;

/**
 * Tells whether this process was restored from a checkpoint, to which CRaC and AWS Lambda's
 * SnapStart call back. Their interface is looked up by name, since most JDKs do not have it.
 */
final class Restore {
  private static Object resource; // CRaC itself has only a weak reference to it

  private Restore() {}

  /** Makes each restore call an action, if there is CRaC. */
  static synchronized void onRestore(Runnable action) {
    for (String crac : new String[] {"org.crac", "jdk.crac"}) {
      try {
        Class<?> type = Class.forName(crac + ".Resource");
        InvocationHandler handler =
            (proxy, method, arguments) -> {
              switch (method.getName()) {
                case "afterRestore":
                  action.run();
                  return null;
                case "equals":
                  return proxy == arguments[0];
                case "hashCode":
                  return System.identityHashCode(proxy);
                case "toString":
                  return "TraceflakeIdGenerator";
                default: // beforeCheckpoint
                  return null;
              }
            };
        resource = Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler);
        Object context = Class.forName(crac + ".Core").getMethod("getGlobalContext").invoke(null);
        Class.forName(crac + ".Context").getMethod("register", type).invoke(context, resource);
        return;
      } catch (ReflectiveOperationException | LinkageError e) {
        // This one is not there.
      }
    }
  }
}
