import InletCore
import SystemPackage
import Testing

/// How agents name files of a share: each alone, and all alike.
struct PlaceVersionTests {
    @Test func `the names are beginnings of SHA-256 as UUIDs`() {
        let version = PlaceVersion(of: "clips/a.mov", size: 1_048_576, modified: 1_700_000_000_123_456_789)
        #expect(version.path == "461f518a-b567-4214-e01a-5a5c3bc9165b")
        #expect(version.version == "29ee7d58-1db7-7b9a-3d5e-5c8f37bfb63d")
        #expect(version.ref(in: "0b5e5d0e-1f0a-4c7e-9d5e-2f1d3c4b5a69", to: "s3://bucket@host") == 6803350835114870951)
    }

    @Test func `what no server shows of a time makes no other version, and all else does`() {
        let version = PlaceVersion(of: "a", size: 1, modified: 1_000)
        #expect(PlaceVersion(of: "a", size: 1, modified: 1_099) == version)
        let others = [
            PlaceVersion(of: "a", size: 1, modified: 1_100), PlaceVersion(of: "a", size: 2, modified: 1_000),
            PlaceVersion(of: "b", size: 1, modified: 1_000),
        ]
        #expect(Set(others + [version]).count == 4)
    }

    @Test func `deliveries of a version differ by share and address, and are never negative`() {
        let version = PlaceVersion(of: "a", size: 1, modified: 1)
        let refs = (0..<64).map { version.ref(in: "p\($0 % 8)", to: "d\($0 / 8)") }
        #expect(Set(refs).count == 64 && refs.allSatisfy { $0 >= 0 })
    }
}
