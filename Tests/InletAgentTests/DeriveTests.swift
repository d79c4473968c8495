import Foundation
import InletAgent
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@Suite struct DeriveTests {
    private func scene(_ rules: DeriveRule...) throws -> Scene {
        var scene = try Scene()
        scene.route.derive = rules
        return scene
    }

    private func shell(_ name: String, _ script: String, suffix: String = ".copy.txt") -> DeriveRule {
        DeriveRule(name: name, command: ["sh", "-c", script, "sh", "{in}", "{out}"], suffix: suffix)
    }

    /// What lies in the folder for what is made of the root's files.
    private func made(_ scene: Scene) throws -> [String] {
        let folder = scene.directory.path.appending("state").appending("derived")
            .appending(DeriveRule.folder(of: scene.root))
        return isThere(folder) ? try names(in: folder) : []
    }

    /// Of which rules it was said that they made nothing, and why.
    private func failures(_ stage: Stage) -> [[String]] {
        stage.events.all.compactMap { event in
            if case .fileNotDerived(_, let name, let reason) = event { [name, reason] } else { nil }
        }
    }

    @Test func `what a program makes is delivered beside the original, and removed then`() async throws {
        // A name that would be an option, or a pattern, to a program that is given it.
        let name = "-clip%03d [1].mp4"
        var scene = try scene(shell("copy", "head -c 3 \"$1\" > \"$2\""))
        scene.route.key = try KeyTemplate("k/{stem}.{ext}")
        try await scene.run { stage in
            let path = try scene.drop(FilePath(name), "content")
            let original = try await stage.finished(FilePath(name))
            let key = try #require(original.deliveries.first?.key)
            try await eventually("what was made is there") {
                scene.here.record.stored[key + ".copy.txt"] == Array("con".utf8)
            }
            try await eventually("it is removed here") { try made(scene).isEmpty }
            #expect(isThere(path) && scene.here.record.stored[key] == Array("content".utf8))
            #expect(stage.events.count("file.derived") == 1)
            let companion = try await stage.jobs().first { $0.file.role == "derived" }
            #expect(companion?.file.mediaType == "text/plain" && companion?.file.batchID == original.file.batchID)
        }
    }

    @Test func `one that fails, writes too much or makes nothing is said, and keeps the original from nothing`()
        async throws
    {
        var large = shell("large", "cat > /dev/null; head -c 9000000 /dev/zero > \"$2\"", suffix: ".large.txt")
        large.maxSize = 4096
        let missing = DeriveRule(
            name: "missing", command: ["no-such-program", "{in}", "{out}"], suffix: ".missing.txt")
        let scene = try scene(
            shell("fails", "echo broken >&2; exit 3"), large, shell("nothing", ":", suffix: ".nothing.txt"), missing,
            shell("good", "cp \"$1\" \"$2\"", suffix: ".good.txt"))
        try await scene.run { stage in
            try await stage.process("a")
            try await eventually("the good one is there") { scene.here.record.stored["a.good.txt"] != nil }
            let failures = failures(stage)
            #expect(failures.map(\.first) == ["fails", "large", "nothing", "missing"])
            #expect(failures.first?.last?.hasPrefix("the program ended with 3: broken") == true)
            #expect(failures.last?.last == "there is no program 'no-such-program'")
        }
        #expect(scene.here.record.stored.keys.sorted() == ["a", "a.good.txt"])
    }

    @Test func `what was made of a file that was swapped meanwhile is not taken`() async throws {
        var scene = try scene()
        let (path, mark) = (scene.root.appending("a"), scene.directory.path.appending("mark"))
        // The first time only: the file that comes in its place is read in peace.
        let swap = "test -e '\(mark)' || { : > '\(mark)'; printf other > '\(mark).new'; mv '\(mark).new' '\(path)'; }"
        scene.route.derive = [shell("copy", "cp \"$1\" \"$2\"; \(swap)")]
        try await scene.run { [scene] stage in
            try scene.drop("a", "content")
            try await eventually("what is there now is there") {
                scene.here.record.stored["a.copy.txt"] == Array("other".utf8)
            }
            #expect(failures(stage) == [["copy", "the file changed while it was read"]])
        }
    }

    @Test func `what a killed process has left is made anew, and its remains are removed`() async throws {
        let scene = try scene(shell("copy", "cp \"$1\" \"$2\""))
        let folder = "state/derived/\(DeriveRule.folder(of: scene.root))"
        try scene.directory.write([1], to: FilePath("\(folder)/1-old.copy.txt"))
        try scene.directory.write([1], to: FilePath("\(folder)/.work/out.copy.txt"))
        try scene.drop("a")
        try await scene.run { stage in
            try await stage.finished("a")
            try await eventually("all is sent and removed") {
                scene.here.record.stored["a.copy.txt"] != nil ? try made(scene).isEmpty : false
            }
        }
        #expect(scene.here.record.stored.keys.sorted() == ["a", "a.copy.txt"])
    }

    @Test func `one that takes too long is ended, and where nothing can be written the original goes alone`()
        async throws
    {
        var rule = shell("slow", "echo begun > \"$2\"; sleep 600")
        rule.timeout = .milliseconds(50)
        let slow = try scene(rule)
        let blocked = try scene(shell("copy", "cp \"$1\" \"$2\""))
        // No folder can be made there, as on a disk that is full.
        try blocked.directory.write([1], to: "state/derived")
        for (scene, reason) in [(slow, "the program took too long and was ended"), (blocked, "mkdir")] {
            try await scene.run { stage in
                try await stage.process("a")
                let failures = failures(stage)
                #expect(failures.count == 1 && failures.first?.last?.contains(reason) == true, "\(failures)")
            }
            #expect(scene.here.record.stored.keys.sorted() == ["a"])
        }
        #expect(try made(slow).isEmpty)
    }

    @Test func `what a program leaves running is ended with it`() async throws {
        let scene = try scene(shell("leaves", "sleep 600 & echo $! > \"$2\""))
        try await scene.run { stage in
            try await stage.process("a")
            try await eventually("the number is there") { scene.here.record.stored["a.copy.txt"] != nil }
            let said = String(decoding: scene.here.record.stored["a.copy.txt"] ?? [], as: UTF8.self)
            let number = try #require(Int32(said.dropLast()))
            try await eventually("it has ended") { !Leash.isRunning(number) }
        }
    }

    @Test func `what was made of a file that goes nowhere is removed`() async throws {
        var scene = try scene(shell("copy", "cp \"$1\" \"$2\""))
        scene.route.dedupe = .skip
        scene.here.always(.prove)
        try await scene.run { stage in
            try await stage.process("a", "same")
            try await stage.process("b", "same", as: .duplicate)
            try await eventually("all is removed") { try made(scene).isEmpty }
        }
        #expect(scene.here.record.stored.keys.sorted() == ["a", "a.copy.txt"])
        #expect(scene.here.record.stored["a.copy.txt"] == Array("same".utf8))
    }

    @Test func `others of the root do not wait for a program`() async throws {
        var scene = try Scene()
        // It ends only when the test says so.
        let gate = scene.directory.path.appending("gate")
        var rule = shell("slow", "until [ -e '\(gate)' ]; do :; done; cp \"$1\" \"$2\"")
        rule.extensions = ["mp4"]
        scene.route.derive = [rule]
        try await scene.run { stage in
            try scene.drop("a.mp4")
            try await stage.process("b.txt")
            #expect(scene.here.record.stored.keys.sorted() == ["b.txt"])
            try scene.directory.write([1], to: "gate")
            try await stage.finished("a.mp4")
        }
    }
}

/// The ready rules of `derive:` with the programs that they name, where these are installed.
@Suite struct DeriveToolTests {
    private static func run(_ tool: String, _ arguments: String...) throws {
        try runProgram(ProgramFinder.find(tool)?.string ?? tool, arguments)
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

    @Test(.enabled(if: ProgramFinder.find("vips") != nil, "needs vips (libvips-tools)"))
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

    @Test(.enabled(if: ProgramFinder.find("vips") != nil, "needs vips (libvips-tools)"))
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

    @Test(.enabled(if: ProgramFinder.find("ffmpeg") != nil, "needs ffmpeg"))
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
