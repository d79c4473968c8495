import CHost
import InletConfig
import InletCore
import SystemPackage

@testable import InletLinux
@testable import InletMedia
@testable import InletPipelines

extension FuzzTarget {
    /// Files that are looked into.
    static let media = [
        FuzzTarget("pictures", longest: 16_384) { bytes throws(Broken) in try readMetadata(Array(bytes)) },
        FuzzTarget("movies", longest: 16_384) { bytes throws(Broken) in
            try readMetadata(Array(bytes))
            try clip(Array(bytes))
        },
        FuzzTarget("mhl", longest: 8192) { bytes throws(Broken) in
            let text = Array(bytes)
            var history = ManifestHistory()
            let isList = history.add(generation: text, called: "0001_card_2026-11-21_000000Z.mhl")
            try promise(history.files.count <= bytes.count, "more files than came")
            _ = history.add(chain: text)
            for link in history.links where !isList {
                try promise(!link.name.contains("/"), "a list of another folder: \(link.name)")
            }
            if let longer = MediaHashList.chain(text, adding: [(2, "0002_card_2026-11-21_000001Z.mhl", "c4")]) {
                try promise(MediaHashList.continues(longer) { $0 == text }, "a chain that was not continued")
            }
            try readSource(text)
        },
    ]

    private static let now = WallTime(milliseconds: 1_795_219_200_000)

    /// A list on a card.
    private static func readSource(_ text: [UInt8]) throws(Broken) {
        guard let list = HashList(text) else { return }
        let (made, fault) = SourceManifest.made(of: list.files.map { ($0.path, $0.size, $0.hashes) }, at: "CLIP/a.mhl")
        try promise((made == nil) == (fault != nil), "neither a list nor a fault, or both")
        for entry in made?.entries ?? [] {
            let isBelow = entry.path.starts(with: "CLIP") && entry.path.components.allSatisfy { $0.kind == .regular }
            try promise(isBelow, "a path that leads away: \(entry.path.display)")
            for digest in entry.listed.all {
                try promise(digest.bytes.count == digest.algorithm.length, "a digest of another length: \(digest)")
            }
            let judgement = ManifestCheck.judge(entry, size: entry.size ?? 0, digests: entry.listed.all)
            try promise(judgement == .same, "a file that differs from itself: \(judgement)")
            let nothing = ManifestCheck.judge(entry, size: entry.size ?? 0, digests: [])
            try promise(nothing == .needsRead(entry.digest.algorithm), "judged without a digest: \(nothing)")
        }
    }

    private static func readMetadata(_ bytes: [UInt8]) throws(Broken) {
        func reader() -> BoundedBytes {
            BoundedBytes(size: Int64(bytes.count)) { offset, count throws(SystemError) in
                Array(bytes[Int(offset)..<min(bytes.count, Int(offset) + count)])
            }
        }
        var found: CaptureDate?
        do throws(SystemError) {
            found = try CaptureDate.read(reader(), at: now)
            let tags = try CameraTags.read(reader())
            _ = Camera(make: tags.make, model: tags.model).name
        } catch {
            throw Broken("an error that the bytes cannot cause: \(error)")
        }
        if let found {
            try promise(found.time.isPlausible(at: now), "a date that no camera wrote: \(found.time.display)")
        }
    }

    /// Headers of recordings, by which a report calls them faulty or says how long they are.
    private static func clip(_ bytes: [UInt8]) throws(Broken) {
        let reader = BoundedBytes(size: Int64(bytes.count)) { offset, count throws(SystemError) in
            Array(bytes[Int(offset)..<min(bytes.count, Int(offset) + count)])
        }
        var facts = ClipFacts()
        do throws(SystemError) {
            _ = try ClipCheck.fault(reader, named: "A001.MXF")
            facts = try ClipFacts.read(reader)
        } catch {
            throw Broken("an error that the bytes cannot cause: \(error)")
        }
        try promise(facts.duration.map { $0 > .zero } ?? true, "a recording of no length")
    }
}

extension FuzzTarget {
    /// Configurations, and the notes that whoever drops files lays beside them.
    static let config = [
        FuzzTarget("settings", longest: 8192) { bytes throws(Broken) in try readSettings(Array(bytes)) },
        FuzzTarget("sidecar") { bytes throws(Broken) in try readSidecar(Array(bytes)) },
    ]

    private static let secret = "canary-4711"

    /// Nothing is read from the machine: `${file:…}` leads into a folder that is not there.
    private static let defaults = ConfigDefaults(
        stateDirectory: "/nowhere/state", home: "/nowhere/home", workingDirectory: "/nowhere/work")

    private static func readSettings(_ bytes: [UInt8]) throws(Broken) {
        let text = String(decoding: bytes, as: UTF8.self)
        // What reads a file of this machine tells about the machine, not about the reader; and a secret that stands in the text
        // itself is hidden only where the text can be understood.
        if text.contains("file:") || text.contains(secret) { return }
        let config: LoadedConfig
        do throws(ConfigErrors) {
            config = try ConfigFile.parse(
                text: bytes, file: "a.yaml", types: DestinationKinds.types, environment: ["KEY": secret],
                defaults: defaults)
        } catch {
            try promise(!error.list.isEmpty, "refused without a reason")
            for one in error.list {
                try promise(one.line >= 1 && one.column >= 1 && one.line <= bytes.count + 1, "no place: \(one)")
                try promise(!"\(one)".contains(secret), "a secret in \(one)")
                try isHarmless("\(one.message)")
            }
            return
        }
        let shown = ConfigPrinter.show(config, types: DestinationKinds.types)
        try promise(!shown.contains(secret), "a secret in what is shown")
        // What was printed can be read again.
        do throws(ConfigErrors) {
            _ = try ConfigFile.shown(shown, file: "a.yaml", types: DestinationKinds.types, defaults: defaults)
        } catch {
            throw Broken("what was shown is not read: \(error)")
        }
    }

    private static func readSidecar(_ bytes: [UInt8]) throws(Broken) {
        var sidecar: Sidecar?
        do throws(ConfigErrors) {
            sidecar = try SidecarMetadata.parse(bytes, file: "a.mp4.yaml")
        } catch {
            try promise(!error.list.isEmpty, "refused without a reason")
        }
        for (name, value) in sidecar?.fields ?? [:] {
            try promise(!name.isEmpty && name.utf8.count <= 64, "a name of \(name.utf8.count) bytes")
            try promise(value.utf8.count <= bytes.count, "more came out than went in")
        }
        _ = try? SidecarMetadata.unitLabels(bytes, file: "a", isMarker: true)
        if let json = try? YAMLAsJSON.convert(bytes, file: "a.yaml") {
            try promise(VOPIValue(json) != nil, "what was made of YAML is no JSON")
        }
    }
}

extension FuzzTarget {
    /// What the kernel writes, with names in it that anyone may have given.
    static let kernel = [
        FuzzTarget("inotify") { bytes throws(Broken) in
            let records = Inotify.parse(bytes)
            try promise(records.count * 16 <= bytes.count, "\(records.count) records in \(bytes.count) bytes")
            let names = records.reduce(0) { $0 + $1.nameBytes.count }
            try promise(names + records.count * 16 <= bytes.count, "names beyond the buffer")
            try promise(records.allSatisfy { !$0.nameBytes.contains(0) }, "a NUL in a name")
        },
        FuzzTarget("fanotify") { bytes throws(Broken) in
            let records = Fanotify.parse(bytes)
            try promise(records.count * 24 <= bytes.count, "\(records.count) records in \(bytes.count) bytes")
            for record in records {
                for place in [record.place, record.target].compactMap(\.self) {
                    try promise(!place.name.isEmpty && !place.name.contains(0), "a name that is none")
                    try promise(place.name.count + place.directory.bytes.count <= bytes.count, "more than came")
                }
                let parts = record.parts(cookie: 1)
                try promise(parts.count <= 2, "more than the two halves of a rename")
            }
        },
        FuzzTarget("mounts") { bytes throws(Broken) in
            let table = MountTable(parsing: Array(bytes))
            for path in ["/", "/srv", "/srv/drop/a", "/media/x y"] as [FilePath] {
                guard let mount = table.mount(of: path) else { continue }
                try promise(path.starts(with: mount.point), "\(mount.point.display) does not hold \(path.display)")
            }
            _ = table.below("/srv")
        },
    ]

    /// What a confined agent and its helper say to each other: either may have been taken over.
    static let neighbours = [
        FuzzTarget("host") { bytes throws(Broken) in
            let message = HostMessage(body: Array(bytes))
            let count = inlet_host_count_fields(Array(bytes), bytes.count)
            try promise(count == message?.fields.count ?? -1, "the sides read different messages")
            guard let message else { return }
            try promise(message.size == bytes.count, "\(message.size) bytes of \(bytes.count)")
            _ = HostResponse.parse(message)
        }
    ]
}
