package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/arch/x86/x86asm"
)

// patience is how long a thread may take for one instruction, and endurance how
// many instructions for one call: more than that, and it goes in circles, or the
// goroutine went on elsewhere.
const (
	patience  = 10 * time.Second
	endurance = 1 << 20
)

// step steps the two threads of a process that run through some calls each,
// one thread after the other. All other threads stay stopped: no timer, no
// scheduler and no collector comes between.
func step(pid int, entry uintptr, calls int) (threads [2]steps, err error) {
	// What a thread traces, only it may.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	t := stepper{entry: uint64(entry), code: make(map[uint64]x86asm.Inst)}
	defer t.watch(pid)()
	// Threads that are still traced when they are killed wait for their tracer.
	defer func() {
		if t.stuck.Load() { // whatever the error is that being killed gave
			err = errStuck
		}
		if err != nil { // or some might not stop any more
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if left := letGo(pid); err == nil {
			err = left
		}
	}()
	var both []int
	for try := 0; len(both) != len(threads); try++ {
		if try == 100 {
			return threads, errors.New("two threads never ran at the same time")
		}
		if try > 0 {
			if err := letGo(pid); err != nil {
				return threads, err
			}
			time.Sleep(time.Millisecond)
		}
		if err := stopAll(pid); err != nil {
			return threads, err
		}
		if both, err = running(pid); err != nil {
			return threads, err
		}
	}
	for i, thread := range both {
		if threads[i], err = t.thread(thread, calls); err != nil {
			return threads, err
		}
	}
	return threads, nil
}

func tasks(pid int) (ids []int, err error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// stopAll stops every thread, those too that start meanwhile.
func stopAll(pid int) error {
	stopped := make(map[int]bool)
	for {
		ids, err := tasks(pid)
		if err != nil {
			return err
		}
		before := len(stopped)
		for _, id := range ids {
			if stopped[id] {
				continue
			}
			if err := syscall.PtraceAttach(id); err != nil {
				return fmt.Errorf("ptrace attach: %w", err)
			}
			if err := wait(id, syscall.SIGSTOP); err != nil {
				return err
			}
			stopped[id] = true
		}
		if len(stopped) == before {
			return nil
		}
	}
}

// letGo lets every thread run again. Those of a process that was killed must
// be waited for, one by one, before anybody can wait for the process.
func letGo(pid int) error {
	ids, err := tasks(pid)
	if err != nil {
		return err
	}
	for _, id := range ids {
		failed := syscall.PtraceDetach(id)
		if errors.Is(failed, syscall.ESRCH) && id != pid {
			_, failed = syscall.Wait4(id, nil, syscall.WALL, nil)
		}
		if failed != nil && err == nil {
			err = fmt.Errorf("ptrace detach: %w", failed)
		}
	}
	return err
}

// running returns the threads that were stopped outside of the kernel: each
// of them has a processor of Go's scheduler to itself.
func running(pid int) (ids []int, err error) {
	all, err := tasks(pid)
	if err != nil {
		return nil, err
	}
	for _, id := range all {
		var r syscall.PtraceRegs
		if err := syscall.PtraceGetRegs(id, &r); err != nil {
			return nil, fmt.Errorf("ptrace registers: %w", err)
		}
		if int64(r.Orig_rax) < 0 {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// wait waits until a thread is stopped by a signal.
func wait(id int, want syscall.Signal) error {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(id, &status, syscall.WALL, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fmt.Errorf("wait for a stop: %w", err)
		case !status.Stopped():
			return fmt.Errorf("thread %d ended by signal %d", id, status.Signal())
		case status.StopSignal() == want:
			return nil
		default: // another signal, which is not for us
			if err := syscall.PtraceCont(id, int(status.StopSignal())); err != nil {
				return fmt.Errorf("ptrace continue: %w", err)
			}
		}
	}
}

// stepper decodes each instruction once.
type stepper struct {
	entry uint64 // of the call
	code  map[uint64]x86asm.Inst
	steps atomic.Int64
	stuck atomic.Bool
}

// watch kills the process when it makes no progress, until it is told to end.
func (t *stepper) watch(pid int) (end func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(patience)
		defer ticker.Stop()
		for seen := int64(-1); ; {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			now := t.steps.Load()
			if now == seen {
				t.stuck.Store(true)
				_ = syscall.Kill(pid, syscall.SIGKILL)
				return
			}
			seen = now
		}
	}()
	return func() { close(done) }
}

// thread steps through the next calls of one thread.
func (t *stepper) thread(id int, calls int) (s steps, err error) {
	var r syscall.PtraceRegs
	var since int // the last call
	next := func() error {
		if since++; since > endurance {
			return errStuck
		}
		t.steps.Add(1)
		if err := syscall.PtraceSingleStep(id); err != nil {
			return fmt.Errorf("ptrace step: %w", err)
		}
		if err := wait(id, syscall.SIGTRAP); err != nil {
			return err
		}
		return syscall.PtraceGetRegs(id, &r)
	}
	for range calls {
		since = 0
		for r.Rip != t.entry {
			if err := next(); err != nil {
				return s, err
			}
		}
		low, high, err := stack(id, r.R14)
		if err != nil {
			return s, err
		}
		top := r.Rsp
		back, err := word(id, top)
		if err != nil {
			return s, err
		}
		n, locked, unknown := 0, 0, 0
		lines, functions := make(map[uint64]bool), make(map[string]int)
		for r.Rip != back || r.Rsp <= top {
			at, err := t.decode(id, r.Rip)
			if err != nil {
				return s, err
			}
			n++
			functions[function(r.Rip)]++
			switch to, size, isLocked := writes(at, &r); {
			case at.Op == 0:
				unknown++
			case size > 0 && (to < low || to >= high):
				for l := to / 64; l <= (to+size-1)/64; l++ {
					lines[l] = true
				}
				if isLocked {
					locked++
				}
			}
			if err := next(); err != nil {
				return s, err
			}
		}
		s.instructions = append(s.instructions, n)
		s.locked = append(s.locked, locked)
		s.unknown = append(s.unknown, unknown)
		s.writes = append(s.writes, lines)
		s.functions = append(s.functions, functions)
	}
	return s, nil
}

// decode returns the instruction at an address; one that is not known has no Op.
func (t *stepper) decode(id int, at uint64) (x86asm.Inst, error) {
	inst, ok := t.code[at]
	if ok {
		return inst, nil
	}
	var code [16]byte
	if _, err := syscall.PtracePeekText(id, uintptr(at), code[:]); err != nil {
		return inst, fmt.Errorf("ptrace peek: %w", err)
	}
	inst, err := x86asm.Decode(code[:], 64)
	if err != nil {
		inst = x86asm.Inst{}
	}
	t.code[at] = inst
	return inst, nil
}

// function names the function of an instruction. The other process is this
// program too, at the same addresses.
func function(at uint64) string {
	frame, _ := runtime.CallersFrames([]uintptr{uintptr(at) + 1}).Next() // callers are named by where they return to
	return frame.Function
}

// stack returns the bounds of the stack of a goroutine, which the register R14
// points to and which begins with them.
func stack(id int, g uint64) (low, high uint64, err error) {
	if low, err = word(id, g); err != nil {
		return 0, 0, err
	}
	high, err = word(id, g+8)
	return low, high, err
}

func word(id int, at uint64) (uint64, error) {
	var b [8]byte
	if _, err := syscall.PtracePeekData(id, uintptr(at), b[:]); err != nil {
		return 0, fmt.Errorf("ptrace peek: %w", err)
	}
	return binary.NativeEndian.Uint64(b[:]), nil
}

// onlyRead are the instructions whose first argument may be memory that they
// do not write. What is forgotten here counts as written.
var onlyRead = map[x86asm.Op]bool{
	x86asm.CMP: true, x86asm.TEST: true, x86asm.JMP: true, x86asm.CALL: true, x86asm.PUSH: true, x86asm.BT: true,
	x86asm.UCOMISD: true, x86asm.UCOMISS: true, x86asm.MUL: true, x86asm.DIV: true, x86asm.IDIV: true, x86asm.NOP: true,
	x86asm.PREFETCHT0: true, x86asm.PREFETCHNTA: true, x86asm.PREFETCHW: true, x86asm.LEA: true,
}

// writes returns where an instruction writes memory, how many bytes, and
// whether it does so atomically. A comparison that fails writes nothing but
// takes the line as a write does, and counts as one.
func writes(i x86asm.Inst, r *syscall.PtraceRegs) (at, size uint64, locked bool) {
	args := i.Args[:1]
	switch i.Op {
	case x86asm.XCHG:
		args, locked = i.Args[:2], true
	case x86asm.IMUL: // with one argument it reads it, with more the first is a register
		return 0, 0, false
	}
	if onlyRead[i.Op] {
		return 0, 0, false
	}
	for _, p := range i.Prefix {
		if p&0xff == x86asm.PrefixLOCK&0xff {
			locked = true
		}
	}
	for _, arg := range args {
		if m, ok := arg.(x86asm.Mem); ok {
			return address(i, m, r), uint64(max(i.MemBytes, 1)), locked
		}
	}
	return 0, 0, false
}

func address(i x86asm.Inst, m x86asm.Mem, r *syscall.PtraceRegs) uint64 {
	at := uint64(m.Disp)
	if m.Base == x86asm.RIP {
		return at + r.Rip + uint64(i.Len)
	}
	at += register(m.Base, r)
	at += register(m.Index, r) * uint64(m.Scale)
	switch m.Segment {
	case x86asm.FS:
		at += r.Fs_base
	case x86asm.GS:
		at += r.Gs_base
	}
	return at
}

func register(reg x86asm.Reg, r *syscall.PtraceRegs) uint64 {
	switch reg {
	case x86asm.RAX:
		return r.Rax
	case x86asm.RBX:
		return r.Rbx
	case x86asm.RCX:
		return r.Rcx
	case x86asm.RDX:
		return r.Rdx
	case x86asm.RSI:
		return r.Rsi
	case x86asm.RDI:
		return r.Rdi
	case x86asm.RBP:
		return r.Rbp
	case x86asm.RSP:
		return r.Rsp
	case x86asm.R8:
		return r.R8
	case x86asm.R9:
		return r.R9
	case x86asm.R10:
		return r.R10
	case x86asm.R11:
		return r.R11
	case x86asm.R12:
		return r.R12
	case x86asm.R13:
		return r.R13
	case x86asm.R14:
		return r.R14
	case x86asm.R15:
		return r.R15
	}
	return 0
}
