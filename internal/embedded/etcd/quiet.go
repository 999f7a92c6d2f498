package etcd

import "go.uber.org/zap"

// quiet is the log of clients: members that are away are no news in a test.
var quiet = zap.NewNop()
