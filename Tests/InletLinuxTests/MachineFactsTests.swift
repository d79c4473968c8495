import Foundation
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

/// What the machine says of itself to a person who looks for a fault.
@Suite struct MachineFactsTests {
    @Test func `the kernel and the memory are known`() throws {
        #expect(try #require(MachineFacts.kernel).hasPrefix("Linux "))
        let memory = try #require(MachineFacts.memory(ofUnit: "no-such.service"))
        #expect(memory.available > 0 && memory.total >= memory.available)
        #expect(MachineFacts.unit("no-such.service") == nil)
    }

    @Test func `a service is enabled and running as its files show, and is none without systemd`() throws {
        let folder = try TemporaryDirectory()
        func unit() -> MachineFacts.Unit? { MachineFacts.unit("inlet.service", of: folder.path) }
        try folder.write("".utf8, to: "usr/lib/systemd/system/inlet.service")
        #expect(unit() == nil)
        try folder.makeDirectory("run/systemd/system")
        #expect(unit() == MachineFacts.Unit(isEnabled: false, isActive: false))
        try folder.write("".utf8, to: "etc/systemd/system/multi-user.target.wants/inlet.service")
        #expect(unit() == MachineFacts.Unit(isEnabled: true, isActive: false))
        // systemd leaves the invocation as a symlink without a target.
        try folder.makeDirectory("run/systemd/units")
        let invocation = folder.path.pushing("run/systemd/units/invocation:inlet.service")
        try FileManager.default.createSymbolicLink(atPath: invocation.string, withDestinationPath: "0123456789abcdef")
        #expect(unit() == MachineFacts.Unit(isEnabled: true, isActive: true))
    }

    @Test func `the limit of descriptors is that which raising it leads to`() {
        let most = ProcessSetup.raiseDescriptorLimit()
        #expect(ProcessSetup.descriptorLimit.now == most && ProcessSetup.descriptorLimit.most == most)
    }

    @Test func `a watch and its instance are counted while they are there`() throws {
        let folder = try TemporaryDirectory()
        let inotify = try Inotify()
        for name in ["a", "b", "c"] { _ = try inotify.add(folder.makeDirectory(FilePath(name))) }
        // Others come and go meanwhile: only what is surely there can be expected.
        let used = WatchNeed.used(by: ProcessSetup.userID)
        #expect(used.watches >= 3 && used.instances >= 1)
        #expect(WatchNeed.used(by: 4_000_000_000).instances == 0, "another user has limits of its own")
        withExtendedLifetime(inotify) {}
    }

    @Test func `room for files is told beside room for bytes`() throws {
        let folder = try TemporaryDirectory()
        guard let inodes = try FreeSpace.inodes(at: folder.path) else { return }
        #expect(inodes.total >= inodes.free && inodes.free > 0)
    }
}

@Suite struct NameLookupTests {
    @Test func `the name of this machine's loopback has its address`() throws {
        let found = try NameLookup.addresses(of: "localhost")
        #expect(found.contains("127.0.0.1") || found.contains("::1"), "\(found)")
        #expect(Set(found).count == found.count)
        #expect(try NameLookup.addresses(of: "127.0.0.1") == ["127.0.0.1"])
    }

    /// RFC 6761: nobody answers for it.
    @Test func `a name without an address is a failure with a reason`() {
        do throws(NameLookup.Failure) {
            let found = try NameLookup.addresses(of: "no-such-name.invalid")
            Issue.record("\(found)")
        } catch {
            #expect(!error.description.isEmpty)
        }
    }
}
