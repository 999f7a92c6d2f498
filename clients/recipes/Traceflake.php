<?php

declare(strict_types=1);

use OpenTelemetry\SDK\Trace\IdGeneratorInterface;

// Trace IDs in the format of docs/format.md: pass it to the SDK's TracerProvider as idGenerator. Use
// one instance for each process.
final class Traceflake implements IdGeneratorInterface
{
    private const EPOCH = 1577836800000;
    private const SEQUENCES = 1 << 23;

    private int $millis = 0; // of the last trace ID
    private int $sequence = 0;

    public function generateTraceId(): string
    {
        return ($this->clearHalf() ?? $this->generateSpanId()) . $this->generateSpanId();
    }

    public function generateSpanId(): string
    {
        do {
            $half = bin2hex(random_bytes(8));
        } while ($half === '0000000000000000');
        return $half;
    }

    private function clearHalf(): ?string
    {
        [$fraction, $seconds] = explode(' ', microtime()); // as text: a float loses milliseconds
        $now = (int) $seconds * 1000 + (int) substr($fraction, 2, 3) - self::EPOCH;
        if ($now < 0 || $now >= 1 << 41) {
            return null;
        }
        $first = $now === 0 ? 1 : 0;
        if (++$this->sequence === self::SEQUENCES) {
            $this->millis++;
            $this->sequence = 0;
        }
        $ahead = ($this->millis - $now) * self::SEQUENCES + $this->sequence - $first;
        if ($ahead < 0 || $ahead >= 2000 * self::SEQUENCES || $this->millis >= 1 << 41) {
            $this->millis = $now;
            $this->sequence = $first;
        }
        return sprintf('%016x', $this->millis << 23 | $this->sequence);
    }
}
