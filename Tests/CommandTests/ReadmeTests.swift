import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// A newcomer who types what the README and the tutorial say reaches what they say.
@Suite struct ReadmeTests {
    private static let readme = ManualPage.all[0]

    /// As a user without rights: root's own files are elsewhere.
    @Test(.enabled(if: Nobody.isAvailable, "needs root and setpriv"))
    func `the README's first delivery needs the commands of its chapter, and no others`() async throws {
        let chapter = try #require(Self.readme.text.components(separatedBy: "\n## A first delivery\n").last)
        let script = try #require(chapter.components(separatedBy: "```sh\n").dropFirst().first)
        let newcomer = try Newcomer()
        try await newcomer.type(try #require(script.components(separatedBy: "```").first))
        #expect(try newcomer.text("Library/picture.jpg") == newcomer.text("Drop/picture.jpg"))
        #expect(try await newcomer.leave() == .code(0))
    }

    @Test(.enabled(if: Nobody.isAvailable, "needs root and setpriv"))
    func `the tutorial's steps deliver one file, and archive the next`() async throws {
        let tutorial = try #require(ManualPage.all.first { $0.description == "FirstDelivery.tutorial" })
        let newcomer = try Newcomer()
        var configurations = 0
        for block in tutorial.blocks {
            if block.language == "sh" {
                try await newcomer.type(block.text)
            } else if configurations == 0 {
                configurations += 1
                #expect(try newcomer.configurationWithoutComments() == block.text)
            } else {
                configurations += 1
                try newcomer.configure(block.text)
            }
        }
        #expect(configurations == 2)
        #expect(try newcomer.text("Drop/.inlet/done/second.jpg") == newcomer.text("Library/second.jpg"))
        #expect(try newcomer.text("Drop/picture.jpg") == newcomer.text("Library/picture.jpg"))
        #expect(try await newcomer.leave() == .code(0))
    }

    // MARK: - Recipes

    /// The recipe whose configuration has this word, in a place of its own, at addresses of this machine.
    private static func configure(_ place: Place, recipe word: String, _ replaced: [(String, String)]) throws {
        var text = try #require(readme.configurations.first { $0.contains(word) })
        let home = place.folder.path.string
        for (old, new) in replaced {
            #expect(text.contains(old), "\(old)")
            text.replace(old, with: new)
        }
        text.replace("~/", with: home + "/")
        try place.configure(text: "state_dir: state\nlog: { level: debug }\n" + text)
    }

    @Test func `the README has three recipes, each a configuration of about ten lines`() {
        let counts = Self.readme.configurations.map { $0.split(separator: "\n").count }
        #expect(counts.count == 3 && counts.allSatisfy { (9...12).contains($0) }, "\(counts)")
    }

    @Test func `the first recipe brings a drop folder into a bucket, and leaves it as it is`() async throws {
        try await withS3 { place, sandbox in
            let endpoint = "http://127.0.0.1:\(try await sandbox.port())"
            try Self.configure(
                place, recipe: "type: s3",
                [
                    ("https://ACCOUNT.r2.cloudflarestorage.com", endpoint), ("bucket: media", "bucket: sandbox"),
                    ("path: /volume1/drop }", "path: \(place.drop.string), settle: 0s }"),
                ])
            let secrets = ["BUCKET_ACCESS_KEY": "AKIDEXAMPLE", "BUCKET_SECRET_KEY": "sandbox-secret-93f1"]
            let agent = try await place.run(environment: secrets)
            try await place.deliver("clips/a.mov", bytes(100_000), by: agent)
            let object = try #require(sandbox.objects().first)
            #expect(object.key.wholeMatch(of: /\d{4}\/\d{2}\/clips\/a\.mov/) != nil, "\(object.key)")
            #expect(try place.content(object.path) == bytes(100_000))
            #expect(place.exists(place.drop.pushing("clips/a.mov")))
            #expect(try await agent.stop() == .code(0))
        }
    }

    @Test func `the second recipe copies a card to two places and reports both, and writes nothing to it`()
        async throws
    {
        let place = try Place()
        let home = place.folder.path
        try Self.configure(
            place, recipe: "unit: folder",
            [
                ("/srv/raid", "\(home)/raid"), ("/mnt/shuttle", "\(home)/shuttle"),
                ("path: /media/*/*/DCIM, copies", "path: \"\(home)/media/*/*/DCIM\", settle: 1s, copies"),
            ])
        let card = home.pushing("media/sam/A001")
        for name in ["raid", "shuttle"] { try place.folder.makeDirectory(FilePath(name)) }
        try place.folder.makeDirectory("media/sam/A001/DCIM/100CANON")
        for name in ["a.mov", "b.mov"] {
            try place.folder.write(bytes(10_000), to: FilePath("media/sam/A001/DCIM/100CANON/\(name)"))
        }
        let before = Place.files(below: card)
        let agent = try await place.run()
        try await agent.line("batch.ended")
        try await place.inlet("report", "--format", "html", "--output", "\(home)/card.html", code: 0)
        let report = String(decoding: try place.content(home.appending("card.html")), as: UTF8.self)
        for copy in ["raid", "shuttle"] {
            let files = Place.files(below: home.appending(copy))
            for name in ["a.mov", "b.mov"] {
                let found = files.filter { $0.key.hasSuffix("100CANON/\(name)") }
                #expect(Array(found.values) == [bytes(10_000)], "\(copy): \(files.keys)")
            }
            #expect(report.contains(copy))
        }
        #expect(report.contains("a.mov") && report.contains("b.mov"))
        let after = Place.files(below: card)
        #expect(after == before, "\(after.keys)")
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `the third recipe files a recording at GigHive, and fetches the pictures of a product`() async throws {
        try await withGigHive { place, gigHive in
            let home = place.folder.path
            let vopi = try VOPISandbox(directory: home.appending("vopi"))
            try await whileServing({ try await vopi.run() }) {
                let login = try place.folder.write((vopi.signIn().refreshToken.reveal() + "\n").utf8, to: "login")
                try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: login.string)
                try place.folder.makeDirectory("Pictures")
                try Self.configure(
                    place, recipe: "type: vopi",
                    [
                        ("https://gighive.example", "http://127.0.0.1:\(try await gigHive.port())"),
                        ("https://vopi.example", "http://127.0.0.1:\(try await vopi.port())"),
                        ("~/.config/inlet/vopi.token", login.string),
                        ("path: ~/Drop }", "path: \(place.drop.string), settle: 0s }"),
                        ("type: vopi\n", "type: vopi\n    poll: 1s\n"),
                    ])
                let agent = try await place.run(environment: ["GIGHIVE_PASSWORD": gigHivePassword])
                try await place.deliver("gigs/The Band/song.mp4", bytes(100_000), by: agent)
                #expect(gigHive.assets().first?.entries.first?.orgName == "The Band")
                try await place.deliver("products/kettle.mp4", bytes(300_000), by: agent)
                let job = try #require(vopi.jobs().first)
                let fetched = Place.files(below: home.appending("Pictures").appending(job.id))
                #expect(try Set(fetched.values).isSuperset(of: vopi.made(of: job.id)), "\(fetched.keys)")
                #expect(place.exists(place.drop.pushing(".inlet/done/products/kettle.mp4")))
                #expect(try await agent.stop() == .code(0))
            }
        }
    }
}

/// A person without rights, with an empty home, who types commands.
private final class Newcomer {
    private let folder: TemporaryDirectory
    private var agent: InletProcess?
    private var files = 0

    private var home: FilePath { folder.path }
    private var configuration: FilePath { home.pushing(".config/inlet/inlet.yaml") }

    init() throws {
        folder = try TemporaryDirectory()
        try Nobody.own(home)
    }

    /// Every line, and what a person waits for after it.
    func type(_ script: String) async throws {
        for words in ShellText.commands(in: script.replacing("~", with: home.string)) {
            switch words.first {
            case "inlet": try await inlet(Array(words.dropFirst()))
            case "cp": try await drop(words[1], into: words[2])
            case "ls": #expect(FileManager.default.fileExists(atPath: words[1]), "\(words)")
            default: Issue.record("\(words) is a command that this test does not know")
            }
        }
    }

    private func inlet(_ words: [String]) async throws {
        // A second one in the same terminal: Ctrl-C has ended the first.
        if words == ["run"], let agent { #expect(try await agent.stop() == .code(0)) }
        // Drawn again and again, it would never end.
        let process = try InletProcess(
            words.filter { $0 != "--watch" || words[0] == "init" }, in: home, launcher: Nobody.launcher)
        if words == ["run"] {
            agent = process
            try await process.line("agent.ready")
            return
        }
        let ending = try await process.ending()
        let said: Comment = "\(words): \(process.output) \(process.errors)"
        switch words[0] {
        case "check":
            // 1: most machines give it something to warn of.
            #expect([.code(0), .code(1)].contains(ending) && !process.output.contains("✗"), said)
        case "status": #expect(ending == .code(0) && process.output.contains("delivered"), said)
        case "queue": #expect(ending == .code(0) && process.output.contains("picture.jpg"), said)
        default: #expect(ending == .code(0), said)
        }
    }

    private func drop(_ name: String, into place: String) async throws {
        files += 1
        let source = try folder.write(bytes(1000 + files), to: FilePath(name))
        try Tool.run("/bin/cp", source.string, place)
        try Nobody.own(FilePath(place))
        try await agent?.line("job.finished") { $0.isAbout(name) && $0["state"] == "delivered" }
    }

    /// Of what `inlet init` has written; folders of the home are `~/…`.
    func configurationWithoutComments() throws -> String {
        let lines = String(decoding: try Data(contentsOf: URL(fileURLWithPath: configuration.string)), as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false)
            .filter { !$0.drop { $0 == " " }.hasPrefix("#") }
            .map { $0.replacing(/\s*(?:^|\s)#.*/, with: "") }
        var kept: [String] = []
        for line in lines where !line.isEmpty || kept.last?.isEmpty == false { kept.append(String(line)) }
        return kept.joined(separator: "\n").replacing(home.string, with: "~")
            .trimmingCharacters(in: .whitespacesAndNewlines) + "\n"
    }

    func configure(_ text: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: configuration.string))
        try Nobody.own(configuration)
    }

    func text(_ path: String) throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: home.pushing(FilePath(path)).string))
    }

    /// Ends the agent.
    func leave() async throws -> InletProcess.Ending? { try await agent?.stop() }
}
