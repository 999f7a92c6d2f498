import Foundation

/// Trace IDs in the format of docs/format.md, for iOS. Use one instance for each process.
final class Traceflake {
    private let lock = NSLock()
    private var last: UInt64 = 0

    func traceId() -> String { hex(clearHalf() ?? randomHalf()) + hex(randomHalf()) }

    func spanId() -> String { hex(randomHalf()) }

    /// The headers of a request. Services that do not know x-trace-id read B3.
    func headers(traceId: String, spanId: String, sampled: Bool = true) -> [String: String] {
        ["x-trace-id": traceId, "X-B3-TraceId": String(traceId.suffix(16)),
         "X-B3-SpanId": spanId, "X-B3-Sampled": sampled ? "1" : "0"]
    }

    private func clearHalf() -> UInt64? {
        lock.lock()
        defer { lock.unlock() }
        let millis = Int64((Date().timeIntervalSince1970 * 1000).rounded(.down)) - 1_577_836_800_000
        guard millis >= 0, millis < 1 << 41 else { return nil }
        let floor = max(UInt64(millis) << 23, 1)
        var next = last &+ 1
        if next < floor || next - floor >= 2000 << 23 { next = floor }
        last = next
        return next
    }

    // SystemRandomNumberGenerator, which is cryptographically secure on Apple's systems.
    private func randomHalf() -> UInt64 { UInt64.random(in: 1...UInt64.max) }

    private func hex(_ half: UInt64) -> String {
        let digits = String(half, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
