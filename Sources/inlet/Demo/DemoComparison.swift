import Foundation
import InletCore
import InletDashboard
import InletJournal
import InletLinux
import InletPipelines
import InletSandbox
import Synchronization
import SystemPackage

/// Holds every stored object against its source, byte for byte, with reads of its own.
struct DemoComparison {
    private let place: DemoPlace
    private let samples: [DemoSamples.Sample]
    private let control: LocalControl
    private let servers: DemoServers
    private let results: DemoResults

    init(_ place: DemoPlace, _ samples: [DemoSamples.Sample], _ control: LocalControl, _ servers: DemoServers) {
        self.place = place
        self.samples = samples
        self.control = control
        self.servers = servers
        results = DemoResults(place, servers)
    }

    /// Prints what was found. - Returns: whether everything is as it should be.
    func run() async throws -> Bool {
        let jobs = try await control.jobs(FileFilter(limit: 1000))
        var differences: [String] = []
        var compared = 0
        for sample in samples {
            let source = place.drop.pushing(sample.path)
            guard let job = jobs.first(where: { $0.path == source.display }) else {
                differences.append("\(sample.path.display) was never seen")
                continue
            }
            switch sample.expectation {
            case .rejected:
                if job.state != FileState.rejected.rawValue {
                    differences.append("\(sample.path.display) should have been refused, but is \(job.state)")
                }
            case .delivered:
                for delivery in job.deliveries {
                    compared += 1
                    if let difference = try await compare(source, delivery) { differences.append(difference) }
                }
            }
        }
        Console.print("")
        let table = results.table
        if !table.isEmpty { Console.print(Console.table(table) + "\n") }
        for difference in differences { Console.print("\(Console.tint("✗", .bad)) \(difference)") }
        if differences.isEmpty {
            Console.print(
                "\(Console.tint("✓", .good)) \(compared) stored objects, pictures and models compared byte for byte: all equal."
            )
        }
        return differences.isEmpty
    }

    private func compare(_ source: FilePath, _ delivery: JobReport.Delivery) async throws -> String? {
        let name = "\(source.display) at \(delivery.destination)"
        guard delivery.state == DeliveryState.delivered.rawValue, let key = delivery.key else {
            return "\(name): \(delivery.state): \(delivery.reason ?? "")"
        }
        switch delivery.destination {
        case "products": return try await results.comparePictures(of: source).map { "\(name): \($0)" }
        case "spaces": return results.compareSpace(source).map { "\(name): \($0)" }
        default: break
        }
        let stored =
            delivery.destination == "library"
            ? place.library.pushing(FilePath(key))
            : servers.stored(at: delivery.destination, key: key, label: source.stem ?? "")
        guard let stored else { return "\(name): there is no object \(key)" }
        return FileManager.default.contentsEqual(atPath: source.string, andPath: stored.string)
            ? nil : "\(name): the object \(key) differs from its source"
    }
}

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
