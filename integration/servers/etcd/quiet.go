package etcd

import "go.uber.org/zap"

// quiet is the log of clients: unreachable members are expected in tests.
var quiet = zap.NewNop()
