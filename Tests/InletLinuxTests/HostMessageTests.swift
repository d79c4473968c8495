import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

@Suite struct HostMessageTests {
    private var child: ChildProcess {
        var child = ChildProcess(
            ["/bin/sh", "-c", "é \u{1F600}"], environment: [(name: "INLET_PATH", value: [0xFF, 0x2F, 0x0A])],
            input: Array(0...255), timeout: .seconds(7), grace: .milliseconds(3), patience: .seconds(5))
        (child.niceness, child.largestFile, child.yieldsMemory, child.leavesNobody) = (10, 1 << 40, true, false)
        return child
    }

    @Test func `a request is on the other side what it was`() throws {
        let identity = FileIdentity(size: -1, modified: .min, changed: .max, inode: .max, device: 7)
        let requests: [HostRequest] = [
            .commands([CommandPattern(["a", ""], place: "/b/"), CommandPattern([])]), .run(.max, child), .cancel(0),
            .holders(9, [HeldFile(identity, FilePath(bytes: [0x2F, 0xFF]))], isFresh: true),
        ]
        for request in requests {
            let read = try #require(HostRequest(request.message))
            #expect(read.message == request.message)
            #expect("\(read)" == "\(request)")
        }
    }

    @Test func `an answer is on the other side what it was`() throws {
        let ends: [ChildProcess.End] = [.exited(3), .signalled(9), .timedOut, .stuck, .cancelled]
        let answers: [HostAnswer] =
            ends.map { .ended(ChildProcess.Outcome(end: $0, errors: [0, 0xFF])) } + [
                .failed(SystemError(call: "posix_spawn", path: "/bin/x", code: .noSuchFileOrDirectory)),
                .failed(SystemError(call: "pipe", code: .tooManyOpenFiles)),
                .holders([nil, OpenWriters.Holder(process: 7, name: "a\nb", isMapping: true)]),
            ]
        for answer in answers {
            let read = try #require(HostAnswer.parse(answer.message(to: 5)))
            #expect(read.number == 5 && "\(read.answer)" == "\(answer)")
        }
    }

    @Test func `what is cut off or changed is no message, and ends nothing`() throws {
        var random = SeededGenerator(seed: 41)
        let message = HostRequest.run(3, child).message
        for _ in 0..<2000 {
            var broken = message
            switch Int.random(in: 0..<3, using: &random) {
            case 0: broken.fields.removeLast(Int.random(in: 1..<broken.fields.count, using: &random))
            case 1: broken.fields.remove(at: Int.random(in: 0..<broken.fields.count, using: &random))
            default:
                let field = Int.random(in: 0..<broken.fields.count, using: &random)
                broken.fields[field] = [UInt8].random(using: &random)
            }
            // Read or not, it is read to the end.
            if let read = HostRequest(broken) { #expect(HostRequest(read.message) != nil) }
            _ = HostAnswer.parse(broken)
        }
        #expect(HostRequest(HostMessage()) == nil && HostAnswer.parse(HostMessage()) == nil)
    }
}

extension [UInt8] {
    fileprivate static func random(using random: inout SeededGenerator) -> [UInt8] {
        (0..<Int.random(in: 0..<12, using: &random)).map { _ in UInt8.random(in: 0x20...0x39, using: &random) }
    }
}
