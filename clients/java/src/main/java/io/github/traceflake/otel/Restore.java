package io.github.traceflake.otel;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

/**
 * Reports that this process was restored from a checkpoint: by the interface of JDKs with CRaC, or
 * by that of AWS Lambda with SnapStart. They are looked up by name, since most processes have
 * neither.
 */
final class Restore implements InvocationHandler {
  private static Object resource; // CRaC itself has only a weak reference to it

  private final Runnable action;

  private Restore(Runnable action) {
    this.action = action;
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) {
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
  }

  /** Makes each restore run an action, if this platform reports restores. */
  static void onRestore(Runnable action) {
    // A search on the class path opens all jars. A JDK's own classes are found without.
    if ("snap-start".equals(System.getenv("AWS_LAMBDA_INITIALIZATION_TYPE"))) {
      register("org.crac", Restore.class.getClassLoader(), action);
    } else {
      register("jdk.crac", null, action);
    }
  }

  static synchronized void register(String crac, ClassLoader loader, Runnable action) {
    try {
      Class<?> type = Class.forName(crac + ".Resource", true, loader);
      Class<?>[] types = {type};
      resource = Proxy.newProxyInstance(type.getClassLoader(), types, new Restore(action));
      Class<?> core = Class.forName(crac + ".Core", true, loader);
      Object context = core.getMethod("getGlobalContext").invoke(null);
      Class.forName(crac + ".Context", true, loader)
          .getMethod("register", type)
          .invoke(context, resource);
    } catch (ReflectiveOperationException | LinkageError e) {
      // It is not there.
    }
  }
}
