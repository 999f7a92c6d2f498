package jdk.crac;

import java.util.ArrayList;
import java.util.List;

/**
 * A mock of the package of JDKs with CRaC, of which no such JDK is needed. The real org.crac finds
 * it.
 */
public final class Core {
  private static final List<Resource> resources = new ArrayList<>();

  private static final Context<Resource> context =
      new Context<>() {
        @Override
        public void beforeCheckpoint(Context<? extends Resource> context) throws Exception {
          for (Resource resource : resources) {
            resource.beforeCheckpoint(this);
          }
        }

        @Override
        public void afterRestore(Context<? extends Resource> context) throws Exception {
          for (Resource resource : resources) {
            resource.afterRestore(this);
          }
        }

        @Override
        public void register(Resource resource) {
          resources.add(resource);
        }
      };

  private Core() {}

  public static Context<Resource> getGlobalContext() {
    return context;
  }

  public static void checkpointRestore() throws CheckpointException, RestoreException {
    throw new CheckpointException();
  }
}
