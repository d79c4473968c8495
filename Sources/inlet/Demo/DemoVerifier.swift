import Foundation
import InletCore
import InletDashboard
import InletJournal
import InletLinux
import InletPipelines
import InletSandbox
import SystemPackage

/// Compares every stored object with its source, byte for byte, with reads of its own. It also checks the servers'
/// results: pictures of a product's video, and spaces that show models.
struct DemoVerifier {
    let place: DemoFolders
    let servers: DemoServers
    private let pool = BlockingPool(name: "compare", threads: 1)
    /// The servers' pictures and models: the file, the product, and its place.
    private var made: [[StyledText]] = []

    init(_ place: DemoFolders, _ servers: DemoServers) { (self.place, self.servers) = (place, servers) }

    /// Prints the findings. - Returns: whether there are no faults.
    mutating func run(_ samples: [DemoSamples.Sample], _ control: LocalControl) async throws -> Bool {
        let jobs = try await control.jobs(FileFilter(limit: 1000))
        var differences: [String] = []
        var compared = 0
        for (path, isRefused) in samples {
            let source = place.drop.pushing(path)
            guard let job = jobs.first(where: { $0.path == source.display }) else {
                differences.append("\(path.display) was never seen")
                continue
            }
            if isRefused {
                if job.state != FileState.rejected.rawValue {
                    differences.append("\(path.display) should have been refused, but is \(job.state)")
                }
                continue
            }
            for delivery in job.deliveries {
                compared += 1
                if let difference = try await compare(source, delivery) {
                    differences.append("\(source.display) at \(delivery.destination): \(difference)")
                }
            }
        }
        Console.print("")
        if !made.isEmpty {
            Console.print(Console.table([.name("FILE"), .text("MADE"), .whole("PLACE")], made, indent: 2) + "\n")
        }
        for difference in differences { Console.print("\(Console.tint("✗", .bad)) \(difference)") }
        if differences.isEmpty {
            Console.print(
                "\(Console.tint("✓", .good)) \(compared) stored objects, pictures and models compared byte for byte: all equal."
            )
        }
        return differences.isEmpty
    }

    /// The fault; nil if there is none.
    private mutating func compare(_ source: FilePath, _ delivery: JobReport.Delivery) async throws -> String? {
        guard delivery.state == DeliveryState.delivered.rawValue, let key = delivery.key else {
            return "\(delivery.state): \(delivery.reason ?? "")"
        }
        switch delivery.destination {
        case "products": return try await comparePictures(of: source)
        case "spaces": return compareSpace(source)
        default: break
        }
        let stored =
            delivery.destination == "library"
            ? place.library.pushing(FilePath(key: key))
            : servers.stored(at: delivery.destination, key: key, label: source.stem ?? "")
        guard let stored else { return "there is no object \(key)" }
        return Self.areEqual(source, stored) ? nil : "the object \(key) differs from its source"
    }

    /// Compares every picture that VOPI made from a video with the downloaded one.
    private mutating func comparePictures(of video: FilePath) async throws -> String? {
        let sha256 = try await SourceDigests.sha256(of: SourceFile(opening: video), on: pool)
        guard let (job, pictures) = servers.pictures(of: sha256) else { return "VOPI made no picture of it" }
        let folder = place.pictures.appending(job)
        let names = FileManager.default.enumerator(atPath: folder.string)?.compactMap { $0 as? String } ?? []
        // The comparison reports a missing file.
        let fetched = names.sorted().map { folder.pushing(FilePath($0)) }.filter {
            FileLook.glance(at: $0)?.identity != nil
        }
        for picture in pictures {
            guard let copy = fetched.first(where: { Self.areEqual(picture, $0) }) else {
                return "a picture of job \(job) is not below \(folder.display), or differs"
            }
            let size = FileLook.glance(at: copy)?.identity?.size ?? 0
            add(video, "picture, \(ByteText.format(size))", copy.display)
        }
        guard fetched.contains(where: { $0.lastComponent?.string == "product.json" }) else {
            return "there is no product.json below \(folder.display)"
        }
        add(video, "data of the product", folder.appending("product.json").display)
        return nil
    }

    /// Compares a space's model with the file, and its preview with the picture beside that.
    private mutating func compareSpace(_ model: FilePath) -> String? {
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

    private mutating func add(_ source: FilePath, _ what: String, _ result: String) {
        made.append([StyledText(place.name(of: source)), "→ \(what)", StyledText(result)])
    }

    private static func areEqual(_ one: FilePath, _ other: FilePath) -> Bool {
        FileManager.default.contentsEqual(atPath: one.string, andPath: other.string)
    }
}
