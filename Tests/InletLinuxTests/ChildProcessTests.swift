import Foundation
import Glibc
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

@Suite struct ChildProcessTests {
    private let pool = BlockingPool(name: "child", threads: 2)

    private func run(
        _ script: String, _ arguments: String..., environment: [(name: String, value: [UInt8])] = [],
        input: [UInt8] = [],
        timeout: Duration = .seconds(60), grace: Duration = .seconds(60)
    ) async throws -> ChildProcess.Outcome {
        try await ChildProcess(
            ["/bin/sh", "-c", script, "sh"] + arguments, environment: environment, input: input, timeout: timeout,
            grace: grace
        ).run(on: pool)
    }

    private func text(_ outcome: ChildProcess.Outcome) -> String { String(decoding: outcome.errors, as: UTF8.self) }

    @Test(arguments: [0, 1, 75, 255] as [Int32]) func `a program's exit code comes back`(_ code: Int32) async throws {
        #expect(try await run("exit $1", String(code)).end == .exited(code))
    }

    @Test func `it gives way, and writes no larger file than it may`() async throws {
        let directory = try TemporaryDirectory()
        let file = directory.path.appending("out")
        // It begins when its input has ended: it is held back by then.
        var child = ChildProcess(
            ["/bin/sh", "-c", "cat > /dev/null; nice >&2; exec head -c 100000 /dev/zero > \"$1\"", "sh", file.string],
            environment: [("PATH", Array("/usr/bin:/bin".utf8))], input: [UInt8](repeating: 0, count: 300_000),
            timeout: .seconds(60))
        child.niceness = 10
        child.largestFile = 4096
        let outcome = try await child.run(on: pool)
        let own = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
        #expect(outcome.end == .signalled(SIGXFSZ) && text(outcome) == "\(min(own + 10, 19))\n")
        #expect(try FileLook.look(at: file).identity?.size == 4096)
    }

    @Test func `a program that a signal ends says which`() async throws {
        #expect(try await run("kill -KILL $$").end == .signalled(SIGKILL))
    }

    @Test func `it reads its input whole, more than a pipe holds`() async throws {
        let input = [UInt8](repeating: UInt8(ascii: "x"), count: 300_000)
        let outcome = try await run("wc -c >&2", environment: [("PATH", Array("/usr/bin:/bin".utf8))], input: input)
        #expect(outcome.end == .exited(0) && text(outcome).contains("300000"))
    }

    @Test func `one that reads nothing is fine, and no signal hits us`() async throws {
        let input = [UInt8](repeating: 0, count: 1 << 20)
        #expect(try await run("exec <&-; exit 7", input: input).end == .exited(7))
    }

    @Test func `of what it says the end is kept, and what it prints goes nowhere`() async throws {
        let outcome = try await run(
            "echo out; i=0; while [ $i -lt 2000 ]; do echo line$i >&2; i=$((i+1)); done")
        #expect(outcome.errors.count == ChildProcess.mostErrors)
        #expect(text(outcome).hasSuffix("line1999\n") && !text(outcome).contains("out"))
    }

    @Test func `its arguments and environment reach it as they are, and nothing of ours does`() async throws {
        let hostile = "$(touch /x) ; `id` 'a\"b*"
        let outcome = try await run(
            #"printf '%s\n' "$1" "$NAME" "${USER-none}" "${HOME-none}" >&2"#, hostile,
            environment: [("NAME", Array("b c".utf8))])
        #expect(text(outcome) == "\(hostile)\nb c\nnone\nnone\n")
    }

    @Test func `it has no descriptor of ours, no signal blocked, and none ignored`() async throws {
        let inherited = open("/dev/null", O_RDONLY)
        defer { close(inherited) }
        let outcome = try await run(
            "while read -r l; do case $l in SigBlk* | SigIgn*) echo \"$l\" >&2 ;; esac; done </proc/$$/status; "
                + "exec ls /proc/self/fd >&2",
            environment: [("PATH", Array("/usr/bin:/bin".utf8))])
        let lines = text(outcome).split(separator: "\n")
        // The last one is the folder that `ls` reads.
        #expect(lines.filter { Int($0) != nil } == ["0", "1", "2", "3"], "\(lines)")
        let masks = lines.filter { $0.hasPrefix("Sig") }.compactMap { UInt64($0.suffix(16), radix: 16) }
        // Signals 32 and 33 belong to the C library.
        #expect(masks.count == 2 && masks.allSatisfy { $0 & 0x7FFF_FFFF == 0 }, "\(lines)")
    }

    @Test func `one that takes too long is ended with all that it started`() async throws {
        let folder = try TemporaryDirectory()
        let file = folder.path.appending("grandchild")
        var id: Int32?
        // On a busy machine the time may be over before it has begun.
        for seconds in [1, 8, 64] where id == nil {
            // The grandchild does not react to SIGTERM: only its group's SIGKILL ends it.
            let outcome = try await run(
                #"sh -c 'trap "" TERM; echo $$. > "$1"; while :; do sleep 1; done' sh "$1" & wait"#, file.string,
                environment: [("PATH", Array("/usr/bin:/bin".utf8))], timeout: .seconds(seconds))
            #expect(outcome.end == .timedOut)
            let said = (try? String(contentsOfFile: file.string, encoding: .utf8)) ?? ""
            if said.contains(".") { id = Int32(said.filter(\.isNumber)) }
        }
        let grandchild = try #require(id)
        try await eventually("the grandchild is gone") {
            !Leash.isRunning(grandchild)
        }
    }

    @Test func `one that does not heed SIGTERM is killed`() async throws {
        let outcome = try await run(
            "trap '' TERM; while :; do :; done", timeout: .milliseconds(300), grace: .milliseconds(100))
        #expect(outcome.end == .timedOut)
    }

    @Test(arguments: [ChildProcess.End.stuck, .cancelled])
    func `one that cannot be ended is left alone, and collected when it has gone`(_ end: ChildProcess.End) async throws
    {
        let folder = try TemporaryDirectory()
        let file = folder.path.appending("id")
        let child = ChildProcess(
            ["/bin/sh", "-c", #"echo "$$." > "$1"; exec sleep 600"#, "sh", file.string],
            environment: [("PATH", Array("/usr/bin:/bin".utf8))],
            timeout: end == .cancelled ? .seconds(600) : .milliseconds(10), grace: .milliseconds(10),
            patience: .milliseconds(10))
        let waker = try Waker()
        if end == .cancelled { waker.wake() }
        // As if it had another user's rights.
        let outcome = try await pool.run { () throws(SystemError) in
            try RunningChild.run(child, waker, on: .shared()) { _ in }
        }
        #expect(outcome.end == end)
        try await eventually("it has begun") {
            (try? String(contentsOfFile: file.string, encoding: .utf8))?.contains(".") == true
        }
        let id = try #require(Int32(String(contentsOfFile: file.string, encoding: .utf8).filter(\.isNumber)))
        #expect(kill(id, SIGKILL) == 0)
        try await eventually("it is collected") {
            _ = try await run("exit 0")
            return !FileManager.default.fileExists(atPath: "/proc/\(id)")
        }
    }

    @Test func `it ends when its task is cancelled`() async throws {
        let folder = try TemporaryDirectory()
        let file = folder.path.appending("started")
        let end = try await withThrowingTaskGroup(of: ChildProcess.End.self) { group in
            group.addTask {
                try await run(
                    "echo > \"$1\"; exec sleep 600", file.string, environment: [("PATH", Array("/usr/bin:/bin".utf8))]
                ).end
            }
            try await eventually("it runs") { FileManager.default.fileExists(atPath: file.string) }
            group.cancelAll()
            return try await group.next()
        }
        #expect(end == .cancelled)
    }

    @Test func `what is not there cannot be started, and is not executable`() async throws {
        let folder = try TemporaryDirectory()
        let missing = folder.path.appending("none")
        let error = await #expect(throws: SystemError.self) {
            _ = try await ChildProcess([missing.string], timeout: .seconds(1)).run(on: pool)
        }
        #expect(error?.isMissing == true)
        #expect(!ChildProcess.isExecutable(missing) && !ChildProcess.isExecutable(folder.path))
        #expect(!ChildProcess.isExecutable(try folder.write(Array("x".utf8), to: "plain")))
        #expect(ChildProcess.isExecutable("/bin/sh"))
    }
}
