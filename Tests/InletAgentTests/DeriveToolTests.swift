import Foundation
import InletAgent
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// The ready rules of `derive:` with the programs that they name, where these are installed.
@Suite struct DeriveToolTests {
    private static func run(_ tool: String, _ arguments: String...) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: ProgramSearch.find(tool)?.string ?? tool)
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "\(tool) \(arguments)")
    }

    /// The width and height that a JPEG's frame header gives (ITU-T T.81, B.2.2); nil for what is no JPEG.
    private static func size(ofJPEG bytes: [UInt8]) -> [Int]? {
        guard bytes.prefix(2) == [0xFF, 0xD8] else { return nil }
        var place = 2
        while place + 9 < bytes.count, bytes[place] == 0xFF {
            if [0xC0, 0xC1, 0xC2].contains(bytes[place + 1]) {
                return [7, 5].map { Int(bytes[place + $0]) << 8 | Int(bytes[place + $0 + 1]) }
            }
            place += 2 + Int(bytes[place + 2]) << 8 + Int(bytes[place + 3])
        }
        return nil
    }

    /// Delivers files of the folder `made`, and gives the sizes of their thumbnails.
    private func thumbnails(
        _ rule: DeriveRule, of names: [String], _ make: (FilePath) throws -> Void
    ) async throws -> [[Int]?] {
        var scene = try Scene()
        scene.route.derive = [rule]
        let folder = try scene.directory.makeDirectory("made")
        try make(folder)
        try await scene.run { stage in
            for name in names {
                let path = FilePath(name)
                try move(folder.appending(name), to: scene.root.appending(name))
                try await stage.finished(path)
            }
            try await eventually("no delivery is left") {
                try await stage.jobs().allSatisfy { $0.file.finishedAt != nil }
            }
        }
        return names.map { name in
            let found = scene.here.record.stored["\(name).thumb.jpg"]
            return found.flatMap { Self.size(ofJPEG: $0) }
        }
    }

    @Test(.enabled(if: ProgramSearch.find("vips") != nil, "needs vips (libvips-tools)"))
    func `vips makes small JPEGs of pictures, and makes none larger`() async throws {
        let names = ["wide.png", "tall.jpg", "small.png", "clear.png", "words.jpg"]
        let sizes = try await thumbnails(DeriveRule.Preset.vips.rule, of: names) { folder in
            try Self.run("vips", "black", folder.appending("wide.png").string, "1600", "800", "--bands", "3")
            try Self.run("vips", "black", folder.appending("tall.jpg").string, "300", "1024", "--bands", "3")
            try Self.run("vips", "black", folder.appending("small.png").string, "40", "30", "--bands", "3")
            // With an alpha channel, which JPEG has not.
            try Self.run("vips", "black", folder.appending("clear.png").string, "600", "600", "--bands", "4")
            try Data("words".utf8).write(to: URL(fileURLWithPath: folder.appending("words.jpg").string))
        }
        #expect(sizes == [[512, 256], [150, 512], [40, 30], [512, 512], nil])
    }

    @Test(.enabled(if: ProgramSearch.find("vips") != nil, "needs vips (libvips-tools)"))
    func `a rule of one's own makes thumbnails of 200 pixels, each with its picture's aspect`() async throws {
        let rule = DeriveRule(
            name: "small", command: ["vips", "thumbnail", "{in}", "{out}", "200", "--height", "200", "--size", "down"],
            suffix: ".thumb.jpg")
        let sizes = try await thumbnails(rule, of: ["wide.png", "tall.jpg", "small.png"]) { folder in
            try Self.run("vips", "black", folder.appending("wide.png").string, "1600", "800", "--bands", "3")
            try Self.run("vips", "black", folder.appending("tall.jpg").string, "300", "1200", "--bands", "3")
            try Self.run("vips", "black", folder.appending("small.png").string, "40", "30", "--bands", "3")
        }
        #expect(sizes == [[200, 100], [50, 200], [40, 30]])
    }

    @Test(.enabled(if: ProgramSearch.find("ffmpeg") != nil, "needs ffmpeg"))
    func `ffmpeg makes a small JPEG of a video's frame, and opens only videos`() async throws {
        let names = ["wide.mp4", "small.mov", "oblong.mkv", "list.mp4"]
        let sizes = try await thumbnails(DeriveRule.Preset.ffmpeg.rule, of: names) { folder in
            func video(_ name: String, _ size: String, _ filter: String = "null") throws {
                try Self.run(
                    "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=\(size):rate=10", "-t", "0.5", "-vf",
                    filter, "-pix_fmt", "yuv420p", "-c:v", "mpeg4", folder.appending(name).string)
            }
            try video("wide.mp4", "1280x720")
            try video("small.mov", "96x64")
            // Pixels that are twice as wide as high.
            try video("oblong.mkv", "200x200", "setsar=2")
            try Data("#EXTM3U\n#EXTINF:1,\n/etc/hostname\n".utf8)
                .write(to: URL(fileURLWithPath: folder.appending("list.mp4").string))
        }
        #expect(sizes == [[512, 288], [96, 64], [400, 200], nil])
    }
}
