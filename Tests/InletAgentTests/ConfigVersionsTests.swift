import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Former texts of a configuration.
@Suite struct ConfigVersionsTests {
    private let folder: TemporaryDirectory
    private let versions: ConfigVersions

    init() throws {
        folder = try TemporaryDirectory()
        versions = ConfigVersions(file: try folder.write("one".utf8, to: "inlet.yaml"))
    }

    @Test func `the newest text is the one that was kept last, whatever the clock says`() throws {
        for (hour, text) in [(5, "one"), (3, "two"), (3, "three")] {
            try folder.write(text.utf8, to: "inlet.yaml")
            let kept = try versions.keep(Array(text.utf8), at: WallTime(milliseconds: Int64(hour) * 3_600_000))
            // The file itself gets another text, as a change gives it one.
            try FileManager.default.removeItem(atPath: versions.file.string)
            #expect(try versions.text(of: kept.lastComponent?.string ?? "") == Array(text.utf8))
        }
        #expect(versions.texts == ["three", "two", "one"].map { Array($0.utf8) })
        #expect(versions.names(except: Array("three".utf8)).count == 2)
    }

    @Test func `ten are kept, and none is open to more people than the present text`() throws {
        #expect(chmod(versions.file.string, 0o644) == 0)
        for _ in 1...12 { _ = try versions.keep([]) }
        // All of them are the file itself under other names, so that one narrow right tells.
        try FileManager.default.removeItem(atPath: versions.file.string)
        try folder.write("now".utf8, to: "inlet.yaml")
        #expect(chmod(versions.file.string, 0o600) == 0)
        versions.prune()
        let names = versions.names(except: [])
        #expect(names.count == 10)
        for name in names {
            let facts = try FileManager.default.attributesOfItem(atPath: versions.folder.appending(name).string)
            #expect((facts[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        }
    }
}
