// Package etcd runs a real etcd for tests, of one member or of several. Each member is a process, so
// that it can be killed and stopped: the test's own program, started again, with etcd's server in
// it. So the TestMain of a package that starts one begins with [Main].
package etcd
