import InletConfig
import SystemPackage
import Testing

/// Modes and owners of files that hold credentials, or say what runs.
struct FileTrustTests {
    private static let us = FileTrust.Reader(user: 990, groups: [990, 44])
    private static let root = FileTrust.Reader(user: 0, groups: [0])

    private static func objections(
        _ mode: UInt32, owner: UInt32 = 990, group: UInt32 = 990, _ kind: FileTrust.Kind,
        _ reader: FileTrust.Reader = us
    ) -> [String] {
        FileTrust(permissions: FilePermissions(rawValue: CInterop.Mode(mode)), owner: owner, group: group)
            .objections(to: kind, for: reader)
    }

    @Test(arguments: FileTrust.Kind.allCases)
    func `what is ours or root's and closed is fine`(_ kind: FileTrust.Kind) {
        for mode in [0o600, 0o400, 0o640, 0o440] as [UInt32] {
            #expect(Self.objections(mode, kind) == [])
            // The package's configuration, and credentials that systemd passes on.
            #expect(Self.objections(mode, owner: 0, kind) == [])
            #expect(Self.objections(mode, owner: 0, group: 0, kind) == [])
            #expect(Self.objections(mode, group: 44, kind) == [])
            #expect(Self.objections(mode, owner: 0, group: 990, kind, Self.root) == [])
        }
    }

    @Test(
        arguments: [
            (0o644, 990, 990, ["may be read by everyone"]), (0o604, 990, 990, ["may be read by everyone"]),
            (0o640, 990, 7, ["may be read by the group 7"]), (0o620, 990, 990, ["may be written by others"]),
            (0o602, 990, 990, ["may be written by others"]), (0o600, 1001, 990, ["belongs to the user 1001"]),
            (
                0o666, 1001, 7,
                ["may be read by everyone", "may be written by others", "belongs to the user 1001"]
            ),
        ] as [(UInt32, UInt32, UInt32, [String])])
    func `of a credential's file each fault is told`(
        _ mode: UInt32, _ owner: UInt32, _ group: UInt32, _ expected: [String]
    ) {
        let found = Self.objections(mode, owner: owner, group: group, .credential)
        #expect(found.count == expected.count)
        for (text, start) in zip(found, expected) { #expect(text.hasPrefix(start), "\(text)") }
        // A configuration may be read, as long as no credential is written in it.
        let others = Self.objections(mode, owner: owner, group: group, .configuration)
        #expect(others.count == expected.count { !$0.contains("read") })
    }

    @Test func `who reads a configuration matters for the credentials in it`() {
        func isOpen(_ mode: UInt32, group: UInt32 = 990, _ reader: FileTrust.Reader = Self.us) -> Bool {
            FileTrust(permissions: FilePermissions(rawValue: CInterop.Mode(mode)), owner: 0, group: group)
                .isReadableByStrangers(for: reader)
        }
        #expect(isOpen(0o644) && isOpen(0o640, group: 7) && isOpen(0o604, group: 7, Self.root))
        #expect(!isOpen(0o640) && !isOpen(0o640, group: 0) && !isOpen(0o640, group: 7, Self.root))
        #expect(!isOpen(0o600, group: 7))
    }
}
