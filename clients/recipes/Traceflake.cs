using System.Buffers.Binary;
using System.Diagnostics;
using System.Security.Cryptography;

// Trace IDs in the format of docs/format.md for every Activity, and so for OpenTelemetry's SDK. Do
// not sample by ratio in .NET: TraceIdRatioBasedSampler reads the clear half, which is the time.
public static class Traceflake
{
    private static ulong last;

    // Call it once, when the process starts.
    public static void Install() => Activity.TraceIdGenerator = NewTraceId;

    private static ActivityTraceId NewTraceId()
    {
        Span<byte> id = stackalloc byte[16];
        do RandomNumberGenerator.Fill(id);
        while (BinaryPrimitives.ReadUInt64BigEndian(id[8..]) == 0);
        if (ClearHalf() is ulong clear) BinaryPrimitives.WriteUInt64BigEndian(id, clear);
        return ActivityTraceId.CreateFromBytes(id);
    }

    private static ulong? ClearHalf()
    {
        while (true)
        {
            ulong before = Interlocked.Read(ref last);
            long millis = DateTimeOffset.UtcNow.ToUnixTimeMilliseconds() - 1_577_836_800_000;
            if (millis < 0 || millis >= 1L << 41) return null;
            ulong floor = Math.Max((ulong)millis << 23, 1), next = unchecked(before + 1);
            if (next < floor || next - floor >= 2000UL << 23) next = floor;
            if (Interlocked.CompareExchange(ref last, next, before) == before) return next;
        }
    }
}
