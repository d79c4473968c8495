import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

@Suite struct KernelFaultPlanTests {
    private func codes(_ plan: KernelFaultPlan, of call: String, _ path: FilePath, times: Int) -> [Errno?] {
        var plan = plan
        return (0..<times).map { _ in plan.next(call, path) }
    }

    @Test func `the same seed lets the same calls fail, and no more than were asked for`() throws {
        let plan = KernelFaultPlan(below: ["/a"], seed: 7, count: 30, every: 4)
        let first = codes(plan, of: "stat", "/a/b", times: 400)
        #expect(first == codes(plan, of: "stat", "/a/b", times: 400))
        #expect(first.count { $0 != nil } == 30)
        #expect(
            Set(first.compactMap(\.self)).isSubset(of: [.ioError, .staleNFSFileHandle, .permissionDenied, .noMemory]))
    }

    @Test func `calls on other folders, and calls that it does not know, are made`() throws {
        let plan = KernelFaultPlan(below: ["/a"], seed: 7, count: 30, every: 1)
        #expect(codes(plan, of: "stat", "/ab", times: 50).allSatisfy { $0 == nil })
        #expect(codes(plan, of: "fcntl", "/a/b", times: 50).allSatisfy { $0 == nil })
        #expect(codes(plan, of: "stat", "/a/b", times: 50).compactMap(\.self).count == 30)
    }

    @Test func `a look fails as the plan says, by a path and in an open folder, and works again when it has ended`()
        throws
    {
        let directory = try TemporaryDirectory()
        let file = try directory.write("content".utf8, to: "a")
        let folder = try Folder(directory.path)
        let number = KernelFaults.begin(KernelFaultPlan(below: [directory.path], seed: 1, count: 100, every: 1))
        #expect(throws: SystemError.self) { try FileLook.look(at: file) }
        #expect(throws: SystemError.self) { try folder.look("a") }
        #expect(throws: SystemError.self) {
            try folder.at("a") { (path) throws(SystemError) in try FileLook.look(at: path) }
        }
        let plan = try #require(KernelFaults.end(number))
        #expect(plan.injected.map(\.path) == [file, file, file])
        #expect(try folder.look("a").identity?.size == 7)
    }
}
