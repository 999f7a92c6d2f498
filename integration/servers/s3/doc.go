// Package s3 runs Versity's S3 gateway for tests, on files. It checks signatures and policies, and
// it is a separate process, so that it can be killed and stopped like a real server: the test's own
// program, started again. So the TestMain of a package that starts one begins with [Main]:
//
//	func TestMain(m *testing.M) {
//		s3.Main()
//		os.Exit(m.Run())
//	}
package s3
