package import SystemPackage

/// A `{field}` of a template.
enum KeyField: Sendable, Hashable {
    case name
    case stem
    case `extension`
    case directory
    /// Counts from 1, the first folder below the root.
    case folder(Int)
    case owner
    case category
    /// The file system's label, else its UUID.
    case volume
    /// Its model, else the system by the card's structure.
    case camera
    /// Given by a person.
    case card(CardLabels.Field)
    /// This many hexadecimal digits from the beginning.
    case sha256(Int)
    case epochMilliseconds
    case sequence
    case modified(DatePattern, zone: String?)
    case now(DatePattern, zone: String?)
    /// When the picture was taken; the mtime if the file has no date.
    case captured(DatePattern, zone: String?)

    private static let known = [
        "name", "stem", "ext", "dir", "folder[1]", "owner", "category", "sha256", "epoch_ms", "seq", "volume", "camera",
        "card.roll", "card.camera", "card.operator", "mtime", "now", "captured",
    ]
    private static let plain: [String: KeyField] = [
        "name": .name, "stem": .stem, "ext": .extension, "dir": .directory, "owner": .owner, "category": .category,
        "sha256": .sha256(64), "epoch_ms": .epochMilliseconds, "seq": .sequence,
        "volume": .volume, "camera": .camera, "card.roll": .card(.roll), "card.camera": .card(.camera),
        "card.operator": .card(.operator),
    ]

    /// Parses the text between the braces; offsets in errors count from its beginning.
    init(_ text: String) throws(PatternError) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts.first ?? "")
        let argument = parts.count == 2 ? String(parts[1]) : nil
        let argumentOffset = name.utf8.count + 1
        switch (name, argument) {
        case ("mtime", let format): self = try Self.date(format, name, argumentOffset) { .modified($0, zone: $1) }
        case ("now", let format): self = try Self.date(format, name, argumentOffset) { .now($0, zone: $1) }
        case ("captured", let format): self = try Self.date(format, name, argumentOffset) { .captured($0, zone: $1) }
        case ("sha256", let digits?): self = .sha256(try Self.count(digits, 1...64, "sha256:12", argumentOffset))
        case (let name, nil) where name.hasPrefix("folder[") && name.hasSuffix("]"):
            self = .folder(try Self.count(String(name.dropFirst(7).dropLast()), 1...4096, "folder[1]", 7))
        default:
            guard let field = Self.plain[name] else { throw Self.unknown(name) }
            if argument != nil { throw PatternError(offset: argumentOffset - 1, message: "'{\(name)}' takes no ':'") }
            self = field
        }
    }

    var facts: [FileProperty] {
        switch self {
        case .sha256: [.sha256]
        case .sequence: [.sequence]
        case .captured: [.captured]
        case .camera: [.camera]
        // Without the label, the file's own camera counts.
        case .card(.camera): [.card(.camera), .camera]
        case .card(let field): [.card(field)]
        default: []
        }
    }

    private static func unknown(_ name: String) -> PatternError {
        if name == "folder" {
            return PatternError(
                offset: 0, message: "'{folder}' needs a number: '{folder[1]}' is the first below the root")
        }
        let shown = DisplayText.escape(name)
        if let nearest = Suggestion.nearest(to: name, in: known) {
            return PatternError(offset: 0, message: "unknown field '{\(shown)}'; did you mean '{\(nearest)}'?")
        }
        let all = known.joined(separator: ", ")
        return PatternError(
            offset: 0, message: "unknown field '{\(shown)}'; known: \(all); for a brace itself write '{{'")
    }

    private static func count(
        _ digits: String, _ range: ClosedRange<Int>, _ example: String, _ offset: Int
    ) throws(PatternError) -> Int {
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(digits), range.contains(number)
        else {
            let bounds = "\(range.lowerBound) to \(range.upperBound)"
            throw PatternError(offset: offset, message: "write a number from \(bounds) here, as in '{\(example)}'")
        }
        return number
    }

    private static func date(
        _ argument: String?, _ name: String, _ offset: Int, _ make: (DatePattern, String?) -> KeyField
    ) throws(PatternError) -> KeyField {
        guard let argument, !argument.isEmpty else {
            throw PatternError(offset: 0, message: "'{\(name)}' needs a format, as in '{\(name):yyyy-MM-dd}'")
        }
        let (format, zone) = DatePattern.splitZone(argument)
        if let zone, !LocalTime.exists(zone) {
            throw PatternError(
                offset: offset + format.utf8.count + 1,
                message: "unknown time zone '\(DisplayText.escape(zone))'; use a name like 'Europe/Berlin' or 'UTC'")
        }
        do throws(PatternError) {
            return make(try DatePattern(format), zone)
        } catch {
            throw PatternError(offset: offset + error.offset, message: error.message)
        }
    }
}

extension KeyField {
    /// The field's text, neither cleaned nor encoded; empty if there is none.
    func value(_ fields: KeyFields, _ form: NameForm) -> String {
        switch self {
        case .name: Self.name(FileName(fields.path), withExtension: true, form)
        case .stem: Self.name(FileName(fields.path), withExtension: false, form)
        case .extension: Self.text(FileName(fields.path).extension, form)
        case .directory: Self.directory(fields.path, form)
        case .folder(let number):
            Self.folders(fields.path).dropFirst(number - 1).first.map { Self.folderName($0, form) } ?? ""
        case .owner: fields.owner ?? ""
        case .category: fields.category
        case .volume: Self.oneName(fields.volume ?? "")
        case .camera: Self.oneName(fields.camera?.name ?? "")
        case .card(.camera): Self.oneName(fields.card?.camera ?? fields.camera?.name ?? "")
        case .card(let field): Self.oneName(fields.card?[field] ?? "")
        case .sha256(let digits): fields.sha256.map { String($0.hex.prefix(digits)) } ?? ""
        case .epochMilliseconds: String(fields.admitted.milliseconds)
        case .sequence: fields.sequence.map { String($0) } ?? ""
        case .modified(let pattern, let zone): pattern.text(Self.modified(fields, zone))
        case .now(let pattern, let zone): pattern.text(LocalTime.local(fields.admitted, zone: zone ?? fields.zone))
        case .captured(let pattern, let zone): pattern.text(Self.captured(fields, zone))
        }
    }

    private static func modified(_ fields: KeyFields, _ zone: String?) -> LocalTime {
        LocalTime.local(WallTime(nanoseconds: fields.modified), zone: zone ?? fields.zone)
    }

    private static func captured(_ fields: KeyFields, _ zone: String?) -> LocalTime {
        guard case .at(let time, _) = fields.captured else { return modified(fields, zone) }
        return LocalTime.local(time, zone: zone ?? fields.zone)
    }

    /// A label, such as ext4's, may contain a slash that is not a folder.
    private static func oneName(_ label: String) -> String {
        String(String.UnicodeScalarView(label.unicodeScalars.map { $0 == "/" ? "_" : $0 }))
    }

    private static func directory(_ path: FilePath, _ form: NameForm) -> String {
        // Nearly all are UTF-8, and stay what they are.
        if form == .clean, !path.isAbsolute, let text = path.text(to: path.nameStart - 1) { return text }
        return folders(path).map { folderName($0, form) }.joined(separator: "/")
    }

    private static func folders(_ path: FilePath) -> [ArraySlice<UInt8>] {
        path.bytes.split(separator: UInt8(ascii: "/")).dropLast()
    }

    private static func text(_ bytes: ArraySlice<UInt8>, _ form: NameForm) -> String {
        form == .clean ? KeySanitizer.text(of: bytes).text : KeptName.text(of: bytes)
    }

    /// Adds the hash of the raw bytes before the extension to a clean name that was not UTF-8, so that two such names
    /// keep different keys.
    private static func name(_ name: FileName, withExtension: Bool, _ form: NameForm) -> String {
        if form != .clean { return KeptName.text(of: withExtension ? name.bytes[...] : name.stem) }
        if withExtension, let text = String(validating: name.bytes, as: UTF8.self) { return text }
        let stem = KeySanitizer.text(of: name.stem)
        let ending = KeySanitizer.text(of: name.extension)
        let mark = stem.isExact && ending.isExact ? "" : "_" + KeySanitizer.hash(name.bytes)
        let tail = withExtension && !ending.text.isEmpty ? "." + ending.text : ""
        return stem.text + mark + tail
    }

    fileprivate static func folderName(_ bytes: ArraySlice<UInt8>, _ form: NameForm) -> String {
        if form != .clean { return KeptName.text(of: bytes) }
        let (text, isExact) = KeySanitizer.text(of: bytes)
        return isExact ? text : text + "_" + KeySanitizer.hash(bytes)
    }
}

extension FilePath.Component {
    /// A folder's name as keys that keep its path have it, in either way (`NameRule`).
    package var namesInKeys: Set<[UInt8]> {
        let bytes = FilePath(root: nil, [self]).bytes
        let (clean, object) = (KeyField.folderName(bytes[...], .clean), KeptName.key(KeptName.text(of: bytes), .object))
        return [bytes, Array(KeySanitizer.key(clean).utf8), Array(object.utf8)]
    }
}

/// A fact that a template needs and that costs more than a `stat`.
package enum FileProperty: Hashable, Sendable {
    /// A number from the journal's counter.
    case sequence
    /// The file's own date: a few reads of its head, and of a video's index.
    case captured
    /// One read of the file: for its key, to recognise its content, or for the unit's manifest.
    case digest(Digest.Algorithm)
    /// The media type by content: one read of the file's head.
    case mediaType
    /// The camera: a few reads of the file's metadata, and of a clip's XML beside it.
    case camera
    /// A label of the file's card: a person gives it.
    case card(CardLabels.Field)

    package static let sha256 = Self.digest(.sha256)

    /// The checksum's algorithm; nil for other facts.
    package var algorithm: Digest.Algorithm? { if case .digest(let algorithm) = self { algorithm } else { nil } }

    /// The card's label; nil for other facts.
    package var label: CardLabels.Field? { if case .card(let field) = self { field } else { nil } }
}

/// The facts about a file when its key is rendered.
package struct KeyFields: Sendable {
    /// Relative to the watched root.
    package var path: FilePath
    /// The mtime in nanoseconds since the epoch.
    package var modified: Int64
    package var owner: String?
    package var category: String
    package var sha256: Digest?
    /// The time of admission, for `epoch_ms` and `now`.
    package var admitted: WallTime
    package var sequence: Int64?
    /// nil counts as `.unknown`.
    package var captured: Captured?
    /// The IANA name of the zone for dates without `@ZONE`; nil for the system's.
    package var zone: String?
    /// The label of its file system, or its UUID.
    package var volume: String?
    package var camera: Camera?
    /// The labels of its card.
    package var card: CardLabels?

    package init(
        path: FilePath, modified: Int64, owner: String? = nil, category: String, sha256: Digest? = nil,
        admitted: WallTime, sequence: Int64? = nil, captured: Captured? = nil, zone: String? = nil,
        volume: String? = nil
    ) {
        self.path = path
        self.modified = modified
        self.owner = owner
        self.category = category
        self.sha256 = sha256
        self.admitted = admitted
        self.sequence = sequence
        self.captured = captured
        self.zone = zone
        self.volume = volume
    }
}
