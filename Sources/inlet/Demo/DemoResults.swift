import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import Synchronization
import SystemPackage

/// What the demo's servers made of files: pictures of a product's video, and spaces that show models.
final class DemoResults: Sendable {
    private let place: DemoPlace
    private let servers: DemoServers
    private let rows = Mutex<[[String]]>([])
    private let pool = BlockingPool(name: "compare", threads: 1)

    init(_ place: DemoPlace, _ servers: DemoServers) {
        self.place = place
        self.servers = servers
    }

    /// What was compared, a row each: the file, what it became, and where that is.
    var table: [[String]] { rows.withLock { $0 } }

    /// Holds every picture that VOPI made of a video against what was fetched. - Returns: what is wrong; nil if nothing.
    func comparePictures(of video: FilePath) async throws -> String? {
        let sha256 = try await Fingerprint.sha256(of: SourceFile(opening: video), on: pool)
        guard let (job, made) = servers.pictures(of: sha256) else { return "VOPI has made no picture of it" }
        let folder = place.pictures.appending(job)
        let fetched = Self.files(below: folder)
        for picture in made {
            guard let copy = fetched.first(where: { Self.areEqual(picture, $0) }) else {
                return "a picture of job \(job) is not below \(folder.display), or differs"
            }
            // Its bytes have just been compared.
            let size = (try? FileLook.look(at: copy))?.identity?.size ?? 0
            add(video, "picture, \(ByteText.format(size))", copy.display)
        }
        guard fetched.contains(where: { $0.lastComponent?.string == "product.json" }) else {
            return "there is no product.json below \(folder.display)"
        }
        add(video, "data of the product", folder.appending("product.json").display)
        return nil
    }

    /// Holds the model that a space refers to against the file, and its preview against the picture beside that.
    ///
    /// - Returns: what is wrong; nil if nothing.
    func compareSpace(_ model: FilePath) -> String? {
        let key = model.removingLastComponent().lastComponent?.string ?? ""
        guard let space = servers.space(key) else { return "there is no space '\(key)'" }
        let picture = model.removingLastComponent().appending((model.stem ?? "") + ".png")
        for (what, url, file) in [("model", space.modelGLBURL, model), ("preview", space.previewURL, picture)] {
            guard let url else { return "space '\(key)' has no \(what)" }
            guard let stored = servers.stored(atURL: url), Self.areEqual(stored, file) else {
                return "the \(what) of space '\(key)', \(url), is not the file"
            }
            add(file, "\(what) of space '\(key)'", url)
        }
        return nil
    }

    private func add(_ source: FilePath, _ what: String, _ where: String) {
        var relative = source
        _ = relative.removePrefix(place.drop)
        let row = [relative.display, "→ \(what)", DisplayText.escape(`where`)]
        rows.withLock { $0.append(row) }
    }

    private static func areEqual(_ one: FilePath, _ other: FilePath) -> Bool {
        FileManager.default.contentsEqual(atPath: one.string, andPath: other.string)
    }

    private static func files(below folder: FilePath) -> [FilePath] {
        let names = FileManager.default.enumerator(atPath: folder.string)?.compactMap { $0 as? String } ?? []
        return names.sorted().map { folder.pushing(FilePath($0)) }
            // What is missed in the comparison is said to be missing.
            .filter { (try? FileLook.look(at: $0))?.identity != nil }
    }
}
