import Foundation
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

    @Test func `without a journal lines go elsewhere, which is said as long as it is so`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path.appending("journal")
        let output = JournalOutput(path)
        let first = output.write([Self.line], .text, at: .now)
        #expect(first.lost == 0 && first.trouble?.contains("standard error") == true)
        #expect(output.write([Self.line], .text, at: .now).trouble == first.trouble)
        var listener: DatagramSocket? = try DatagramSocket(at: path)
        let second = output.write([Self.line, Self.line], .text, at: .now)
        #expect(second.lost == 0 && second.trouble == nil)
        #expect(listener?.receive()?.contains("INLET_JOB=7\n") == true)
        #expect(listener?.receive()?.contains("INLET_JOB=7\n") == true)
        listener = nil
        #expect(output.write([Self.line], .text, at: .now).trouble != nil)
    }
}
