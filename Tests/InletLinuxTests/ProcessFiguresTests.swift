import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

@Suite struct ProcessFiguresTests {
    @Test func `descriptors that are open are counted`() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write([1], to: "file")
        // Other tests open and close theirs meanwhile: these alone are certain.
        let held = try (0..<64).map { _ in try FileDescriptor.open(path, .readOnly, options: .closeOnExec) }
        defer { for descriptor in held { try? descriptor.close() } }
        #expect(try #require(ProcessFigures.now().openDescriptors) >= 64)
    }

    @Test func `memory is counted once it is used, in bytes`() throws {
        let size = 64 << 20
        let bytes = [UInt8](repeating: 1, count: size)
        let resident = try #require(ProcessFigures.now().residentBytes)
        #expect(resident > Int64(size) && resident < Int64(1) << 40)
        withExtendedLifetime(bytes) {}
    }

    @Test func `processor time grows with work`() throws {
        let before = try #require(ProcessFigures.now().processorTime)
        var sum: UInt64 = 1
        for step in (0 as UInt64)..<1_000_000 { sum = sum &* 31 &+ step }
        let after = try #require(ProcessFigures.now().processorTime)
        #expect(sum != 0 && after > before && after - before < .seconds(3600))
    }
}
