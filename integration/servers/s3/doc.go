// Package s3 runs servers of S3 for tests: each is a separate process, so that
// it can be killed and stopped like a real one.
//
// [Versity] and [GoFakeS3] are the test's own program, started again. So the
// TestMain of a package that starts one begins with [Main]:
//
//	func TestMain(m *testing.M) {
//		s3.Main()
//		os.Exit(m.Run())
//	}
//
// [MinIO] is a program that make minio builds from a module outside of go.work.
package s3
