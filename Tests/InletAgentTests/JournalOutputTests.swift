import Foundation
import Glibc
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Lines that go to systemd's journal.
@Suite struct JournalOutputTests {
    private static let line = AgentEvent.jobAdmitted(
        job: 7, path: "/in/a b.mp4", route: "all", size: 9, deliveries: ["d", "e"]
    ).line

    @Test func `each field of a line is a field of the entry`() throws {
        let fields = Set(String(decoding: Self.line.journalMessage.bytes, as: UTF8.self).split(separator: "\n"))
        #expect(
            fields == [
                #"MESSAGE=job.admitted job=7 path="/in/a b.mp4" route=all size=9 destinations=d,e"#, "PRIORITY=6",
                "SYSLOG_IDENTIFIER=inlet", "INLET_EVENT=job.admitted", "INLET_JOB=7", "INLET_PATH=/in/a b.mp4",
                "INLET_ROUTE=all", "INLET_SIZE=9", "INLET_DESTINATIONS=d,e",
            ])
    }

    @Test func `without a journal it is said once that lines go elsewhere, and again after it was there`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path.appending("journal")
        let output = JournalOutput(path)
        let first = output.write([Self.line], .text, at: .now)
        #expect(first.trouble?.contains("standard error") == true)
        #expect(output.write([Self.line], .text, at: .now) == LogNews())
        var listener: Listener? = try Listener(at: path)
        #expect(output.write([Self.line, Self.line], .text, at: .now) == LogNews())
        #expect(listener?.receive()?.contains("INLET_JOB=7\n") == true)
        #expect(listener?.receive()?.contains("INLET_JOB=7\n") == true)
        listener = nil
        #expect(output.write([Self.line], .text, at: .now).trouble != nil)
    }
}

/// A bound datagram socket in the file system.
private final class Listener {
    private let number: CInt

    init(at path: FilePath) throws {
        number = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.string.utf8) }
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard code == 0 else { throw Errno(rawValue: errno) }
    }

    func receive() -> String? {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(number, &bytes, bytes.count, CInt(MSG_DONTWAIT))
        return count < 0 ? nil : String(decoding: bytes[..<count], as: UTF8.self)
    }

    deinit { close(number) }
}
