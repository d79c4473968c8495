import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The manual's recipes keep their promises: the built agent runs each configuration against the sandbox's servers.
@Suite struct RecipeTests {
    private static let page = Repository.root.pushing("Sources/inlet/inlet.docc/Recipes.md")
    private static let recipes = ((try? String(contentsOfFile: page.string, encoding: .utf8)) ?? "")
        .components(separatedBy: "\n## ").dropFirst().map(Recipe.init)

    @Test func `there are twelve recipes or more, each with one configuration and a file that arrives`() {
        #expect(Self.recipes.count >= 12)
        for recipe in Self.recipes {
            #expect(recipe.configurations.count == 1, "\(recipe)")
            #expect(recipe.configurations.joined().contains(#/\n# route: .+ -> .+ to .+ as /#), "\(recipe)")
        }
    }

    @Test(arguments: recipes)
    func `a recipe's files arrive whole, and their sources are kept, moved or deleted as it says`(_ recipe: Recipe)
        async throws
    {
        let scene = try RecipeScene(recipe)
        try await whileServing({ try await scene.servers.run() }) {
            let disks = try await scene.prepare()
            let agent = try await scene.place.run(environment: scene.secrets)
            let cards = try scene.drop()
            for promise in scene.promises { try await scene.expect(promise, by: agent) }
            try await scene.expectReports(by: agent, hasCard: !cards.isEmpty)
            #expect(try await agent.stop() == .code(0))
            withExtendedLifetime((cards, disks)) {}
        }
    }
}

/// A chapter of the page.
struct Recipe: Sendable, CustomStringConvertible {
    let description: String
    let configurations: [String]

    init(_ chapter: String) {
        description = chapter.components(separatedBy: "\n")[0]
        configurations = chapter.components(separatedBy: "```yaml\n").dropFirst().map {
            "state_dir: state\nlog: { level: debug }\n" + $0.components(separatedBy: "```")[0]
        }
    }
}

/// The servers that recipes name, on loopback.
private struct RecipeServers: Sendable {
    let spiral: SpiralSandbox
    let s3: S3Sandbox
    let gigHive: GigHiveSandbox
    let vopi: VOPISandbox
    let roboscope = RoboscopeSandbox()
    let phone: NoticeReceiver
    private let phoneServer: ScriptedServer

    init(in folder: FilePath, secrets: [String: String]) throws {
        func secret(_ name: String) -> Secret { Secret(secrets[name] ?? "") }
        spiral = try SpiralSandbox(directory: folder.appending("spiral"), apiKey: secret("SPIRAL_KEY"))
        let account = S3Sandbox.Account(
            bucket: "media", accessKey: secrets["S3_ACCESS_KEY"] ?? "", secretKey: secret("S3_SECRET_KEY"),
            region: "us-east-1")
        s3 = try S3Sandbox(directory: folder.appending("s3"), account: account)
        gigHive = try GigHiveSandbox(
            directory: folder.appending("gighive"), passwords: ["uploader": secret("GIGHIVE_PASSWORD")])
        vopi = try VOPISandbox(directory: folder.appending("vopi"))
        let phone = NoticeReceiver()
        self.phone = phone
        phoneServer = try ScriptedServer { try phone.serve($0) }
    }

    func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await spiral.run() }
            group.addTask { try await s3.run() }
            group.addTask { try await gigHive.run() }
            group.addTask { try await vopi.run() }
            group.addTask { try await roboscope.run() }
            try await group.waitForAll()
        }
    }

    /// The page's addresses, and the loopback ones that replace them.
    func addresses() async throws -> [(page: String, here: String)] {
        let ports = [
            ("https://storage.example.com", try await spiral.port()), ("https://s3.example.com", try await s3.port()),
            ("https://minio.example.com:9000", try await s3.port()),
            ("https://cdn.example.com", try await s3.port()), ("https://gighive.example", try await gigHive.port()),
            ("https://vopi.example", try await vopi.port()),
            ("https://roboscope.example", try await roboscope.port()),
            ("https://ntfy.example", Int(phoneServer.port)),
            ("https://homeassistant.example", Int(phoneServer.port)),
        ]
        return ports.map { ($0, "http://127.0.0.1:\($1)") }
    }
}

/// One recipe on a machine of its own: its folders, its files and its servers.
private struct RecipeScene: Sendable {
    let servers: RecipeServers
    private let example: Example
    private let destinations: [String: String]

    private static let ffmpeg = "/usr/bin/ffmpeg"
    private static let hasFFmpeg = FileManager.default.isExecutableFile(atPath: ffmpeg)

    init(_ recipe: Recipe) throws {
        example = try Example(try #require(recipe.configurations.first))
        servers = try RecipeServers(in: example.place.folder.path.appending("servers"), secrets: example.secrets)
        destinations = Self.entries(of: "destinations", #/  (\w+):.*/#, in: example.text)
    }

    var place: Place { example.place }
    var secrets: [String: String] { example.secrets }
    var promises: [Promise] { example.promises }

    /// The entries of a top-level key, by name.
    private static func entries(
        of key: String, _ first: Regex<(Substring, Substring)>, in text: String
    ) -> [String: String] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).drop { $0 != "\(key):" }.dropFirst()
        var (entries, name): ([String: String], String) = ([:], "")
        for line in lines.prefix(while: { $0.isEmpty || $0.hasPrefix(" ") }) {
            if let match = line.wholeMatch(of: first) { name = String(match.output.1) }
            entries[name, default: ""] += line + "\n"
        }
        return entries
    }

    // MARK: - Before the start

    /// Writes the configuration with the servers' addresses and without long waits; creates its folders and its login.
    /// - Returns: disks in memory, for a recipe that counts copies: folders of one disk are one copy.
    func prepare() async throws -> [TestMount] {
        var text = example.text
        for (page, here) in try await servers.addresses() { text.replace(page, with: here) }
        #expect(!text.contains("https://"))
        text.replace(/\n    settle\w*: .*/, with: "")
        text.replace(/\n  - path: .*/) { $0.output + "\n    settle: 300ms\n    settle_empty: 0s" }
        text.replace(/wait: \w+/, with: "wait: 1s")
        text.replace(/min_free: \w+/, with: "min_free: 1MiB")
        text.replace("    type: vopi\n", with: "    type: vopi\n    poll: 1s\n")
        try place.configure(text: text)
        for match in text.matches(of: /\b(?:path|results): (\/[^\s,}]+)/) {
            try FileManager.default.createDirectory(
                atPath: String(match.output.1), withIntermediateDirectories: true)
        }
        if let match = text.firstMatch(of: /refresh_token_file: ([^\s,}]+)/) {
            let token = servers.vopi.signIn().refreshToken.reveal()
            let file = try place.folder.write(
                token.utf8, to: FilePath(String(match.output.1.dropFirst(place.folder.path.string.count + 1))))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.string)
        }
        if let earlier = promises.first, text.contains("existing: adopt") { try put(earlier) }
        guard text.contains("copies:"), TestMount.isAllowed else { return [] }
        return try text.matches(of: /type: folder, path: (\/[^\s,}]+)/).dropFirst().map { match in
            try TestMount("tmpfs", at: FilePath(String(match.output.1)))
        }
    }

    // MARK: - Files

    /// Drops the files, first those that no route takes. - Returns: their cards, where this machine can mount some.
    func drop() throws -> [DiskImage] {
        let files = promises.filter { $0.parts == nil } + promises.filter { $0.parts != nil }
        guard let media = files.lazy.compactMap({ cardPoint(of: $0) }).first, DiskImage.isAvailable else {
            for promise in files where !FileManager.default.fileExists(atPath: promise.file.string) { try put(promise) }
            if let marked = files.last, example.text.contains("completion: marker") {
                try Data().write(to: URL(fileURLWithPath: marked.file.removingLastComponent().appending("DONE").string))
            }
            return []
        }
        let card = try DiskImage(label: media.lastComponent?.string ?? "CARD", megabytes: 8)
        for promise in files {
            try card.write(
                try content(of: promise),
                to: FilePath(root: nil, promise.file.components.dropFirst(media.components.count)))
        }
        try FileManager.default.createDirectory(atPath: media.string, withIntermediateDirectories: true)
        try card.mount(at: media, readOnly: true)
        return [card]
    }

    /// The mount point of the card that holds a file.
    private func cardPoint(of promise: Promise) -> FilePath? {
        let media = place.folder.path.appending("media")
        guard promise.file.starts(with: media) else { return nil }
        let isOwn = promise.file.starts(with: media.appending("inlet"))
        return FilePath(root: "/", promise.file.components.prefix(media.components.count + (isOwn ? 2 : 1)))
    }

    /// Writes elsewhere, then renames. The file's date is 2026-03-14.
    private func put(_ promise: Promise) throws {
        let draft = try place.folder.write(try content(of: promise), to: "draft")
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1_773_489_600)], ofItemAtPath: draft.string)
        try FileManager.default.createDirectory(
            atPath: promise.file.removingLastComponent().string, withIntermediateDirectories: true)
        guard rename(draft.string, promise.file.string) == 0 else { throw Errno(rawValue: errno) }
    }

    /// Different for each file of the page.
    private func content(of promise: Promise) throws -> Data {
        let number = promises.firstIndex { $0.file == promise.file } ?? 0
        let name = promise.file.lastComponent?.string ?? ""
        let filling = bytes(4096 + number, seed: UInt64(number))
        if name.hasSuffix(".yaml") { return Data("labels: { scene: \"12\" }\n".utf8) }
        if name == "fake.pdf" { return Data("MZ".utf8) + Data(count: 126) }
        if name.hasSuffix(".pdf") { return Data("%PDF-1.7\n".utf8) + filling }
        guard example.text.contains("derive:"), Self.hasFFmpeg else { return filling }
        let clip = place.folder.path.appending("clip.mov")
        if place.exists(clip) { return try place.content(clip) }
        try Tool.run(
            Self.ffmpeg, "-v", "error", "-f", "lavfi", "-i", "testsrc=duration=1:size=320x240:rate=10", "-pix_fmt",
            "yuv420p", clip.string)
        return try place.content(clip)
    }

    // MARK: - Afterwards

    func expect(_ promise: Promise, by agent: InletProcess) async throws {
        func finished(_ state: String) async throws {
            let end = try await agent.line("job.finished") { $0["path"] == promise.file.string }
            #expect(end["state"] == state, "\(end)")
        }
        if let parts = promise.parts {
            try await finished("delivered")
            let names = parts.destinations.replacing(#/ \(.*\)/#, with: "").components(separatedBy: ", ")
            for name in names { #expect(try has(promise, at: name), "\(promise.file) at \(name)") }
            try expectSource(promise, of: parts.route)
        } else if promise.words.hasPrefix("goes with") {
            try await finished("delivered")
            for name in destinations.keys { #expect(try has(promise, at: name), "\(promise.file) at \(name)") }
        } else if promise.words == "rejected" {
            try await finished("rejected")
            let isQuarantined = example.text.contains("on_failure: quarantine")
            let kept = isQuarantined ? try own("failed", promise.file) : promise.file
            #expect(place.exists(kept) && (!isQuarantined || place.exists(FilePath(kept.string + ".reason.json"))))
        } else {
            try promise.compare(try await place.inlet(["route", promise.file.string], environment: secrets))
            #expect(agent.lines("job.admitted") { $0["path"] == promise.file.string }.isEmpty)
        }
    }

    /// Whether a destination has the whole file.
    private func has(_ promise: Promise, at name: String) throws -> Bool {
        let entry = try #require(destinations[name], "\(name)")
        let content = try content(of: promise)
        func isThere(_ objects: [StoredObject]) throws -> Bool {
            try objects.contains { try promise.isKey($0.key) && place.content($0.path) == content }
        }
        switch try #require(entry.firstMatch(of: /type: (\w+)/)).output.1 {
        case "folder":
            let path = try #require(entry.firstMatch(of: /path: ([^\s,}]+)/)).output.1
            let files = Place.files(below: FilePath(String(path)))
            return files.contains { promise.isKey($0) && $1 == content }
        case "r2": return try isThere(servers.spiral.objects())
        case "s3": return try isThere(servers.s3.objects())
        case "gighive": return try servers.gigHive.assets().contains { try place.content($0.path) == content }
        case "roboscope": return servers.roboscope.spaces().contains { promise.isKey(Self.key($0.modelGLBURL)) }
        case "vopi":
            let results = try #require(entry.firstMatch(of: /results: ([^\s,}]+)/)).output.1
            return servers.vopi.videos().contains { $0.size == Int64(content.count) }
                && Place.files(below: FilePath(String(results))).keys.contains { $0.hasSuffix("/product.json") }
        case let type:
            Issue.record("no server of type \(type)")
            return false
        }
    }

    /// The key in an object's public address.
    private static func key(_ url: String?) -> String {
        url.flatMap { URL(string: $0)?.path }.map { String($0.dropFirst()) } ?? ""
    }

    private func expectSource(_ promise: Promise, of route: String) throws {
        let entry = Self.entries(of: "routes", #/  - name: (\S+).*/#, in: example.text)[route] ?? ""
        let disposal = entry.firstMatch(of: /on_success: (\w+)/)?.output.1 ?? "keep"
        #expect(place.exists(promise.file) == (disposal == "keep"), "\(promise.file)")
        if disposal == "archive" { #expect(place.exists(try own("done", promise.file))) }
    }

    /// The place of a watched file below `.inlet/FOLDER`.
    private func own(_ folder: String, _ file: FilePath) throws -> FilePath {
        let root = FilePath(String(try #require(example.text.firstMatch(of: /\n  - path: (\S+)/)).output.1))
        return root.appending(".inlet").appending(folder)
            .pushing(FilePath(root: nil, file.components.dropFirst(root.components.count)))
    }

    /// A card is safe, once a person has said that its other files may stay.
    private func expectSafe(by agent: InletProcess) async throws {
        let points = promises.compactMap(cardPoint)
        let card = try #require(points.first?.lastComponent).string
        if promises.contains(where: { $0.words == "no route takes it" }) {
            try await agent.told("NOT YET: 1 other file on it", of: card)
            try await place.inlet("cards", "leave", card, code: 0)
        }
        try await agent.told(InletProcess.safe, of: card)
        guard example.text.contains("on_card:") else { return }
        try await agent.wait("the lamp is told") {
            servers.phone.notices.contains { String(decoding: $0.body, as: UTF8.self).contains(#""state":"safe""#) }
        }
    }

    /// Batches, checksum lists, cards, derived files, messages and duplicates, where the recipe has them.
    func expectReports(by agent: InletProcess, hasCard: Bool) async throws {
        let text = example.text
        if text.contains("unit: folder") { try await agent.line("batch.ended") { $0["outcome"] == "complete" } }
        if text.contains("manifest:") { try await agent.line("manifest.written") { $0["destination"] != nil } }
        if text.contains("existing: adopt") { try await agent.line("file.not_adopted") }
        if hasCard { try await expectSafe(by: agent) }
        if text.contains("derive:") {
            try await agent.line(Self.hasFFmpeg ? "file.derived" : "file.not_derived", number: 2)
        }
        if text.contains("ntfy:") {
            try await agent.line("notification.sent")
            let said = servers.phone.notices.map { String(decoding: $0.body, as: UTF8.self) }
            #expect(said.contains { $0.contains(#""title":"Rejected: "#) }, "\(said)")
        }
        if text.contains("dedupe: skip"), let first = promises.first {
            let copy = FilePath(first.file.string + ".jpg")
            try place.content(first.file).write(to: URL(fileURLWithPath: copy.string))
            try await agent.line("job.finished") { $0["path"] == copy.string && $0["state"] == "duplicate" }
        }
    }
}
