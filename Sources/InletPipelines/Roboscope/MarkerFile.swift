internal import InletCore
internal import InletTransfer

/// A `markers.json`, checked as a whole. Markers stay bytes of the file, and become values again one chunk at a time: a
/// file of 64 MiB takes little more memory than that.
///
/// Either `{"space": KEY, "session": ID or {…}, "markers": […]}`, or the bare list.
struct MarkerFile: Sendable {
    /// Larger files are refused.
    static let longest = 64 << 20

    /// Key of the space; nil = the route's.
    private(set) var space: String?
    /// An existing session; nil = one is found or created.
    private(set) var session: String?
    /// The plan for a new session.
    private(set) var plan = SessionFile()
    /// The checksum of the file on disk.
    let digest: Digest
    private let json: [UInt8]
    /// The range of each marker's text.
    private var ranges: [Range<Int>] = []

    var count: Int { ranges.count }

    /// Further ones are only counted.
    private static let mostShown = 10

    /// Reads and checks everything. - Throws: the faults, with the numbers of the markers, which count from 1.
    init(_ json: [UInt8], digest: Digest) throws(DeliveryError) {
        self.json = json
        self.digest = digest
        var faults: [String] = []
        var reader = JSONReader(json)
        do throws(JSONFault) {
            if try reader.next() == UInt8(ascii: "[") {
                ranges = try Self.markers(&reader, &faults)
            } else {
                try readDocument(&reader, &faults)
            }
            try reader.end()
        } catch {
            throw Self.fault("\(error)")
        }
        if ranges.isEmpty, faults.isEmpty { faults.append("there are no markers in it") }
        guard faults.isEmpty else {
            let more = faults.count - Self.mostShown
            let shown = faults.prefix(Self.mostShown).joined(separator: "; ")
            throw Self.fault(more > 0 ? "\(shown); and \(more) more" : shown)
        }
    }

    private static func fault(_ reason: String) -> DeliveryError { DeliveryError(.giveUp, .rejected, reason) }

    private mutating func readDocument(_ reader: inout JSONReader, _ faults: inout [String]) throws(JSONFault) {
        guard try reader.next() == UInt8(ascii: "{") else {
            throw reader.fault("a list of markers, or an object with one under 'markers', is expected")
        }
        var head: JSONObject = [:]
        try reader.members { name, reader throws(JSONFault) in
            if name == "markers", try reader.next() == UInt8(ascii: "[") {
                ranges = try Self.markers(&reader, &faults)
            } else {
                head[name] = try reader.value()
            }
        }
        if let markers = head["markers"], markers != .null { faults.append("'markers' is not a list") }
        read(head: head, &faults)
    }

    private mutating func read(head: JSONObject, _ faults: inout [String]) {
        for name in ["space", "space_key"] {
            guard let value = head[name], value != .null else { continue }
            if let text = value.string, !text.isEmpty { space = text } else { faults.append("'\(name)' is not text") }
        }
        for name in ["session", "session_id", "work_session_id"] {
            guard let value = head[name], value != .null else { continue }
            if let text = value.string {
                if RoboscopeAPI.isID(text) { session = text } else { faults.append("'\(name)' is not an id") }
                continue
            }
            do throws(SettingFault) {
                plan = try SessionFile(value)
            } catch {
                faults.append("session: \(error.key) \(error.message)")
            }
        }
    }

    private static func markers(
        _ reader: inout JSONReader, _ faults: inout [String]
    ) throws(JSONFault) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        try reader.elements { reader throws(JSONFault) in
            _ = try reader.next()
            let start = reader.offset
            let marker = try reader.value()
            ranges.append(start..<reader.offset)
            faults += Self.objections(to: marker).map { "marker \(ranges.count): \($0)" }
        }
        return ranges
    }

    // MARK: - Sending

    /// The stamp of marker number `index`, which counts from 0.
    func ingestID(_ index: Int) -> String { "\(digest.hex)#\(index)" }

    /// The number of the marker with this stamp; nil for a stamp of another file.
    func index(of ingestID: String) -> Int? {
        let head = digest.hex + "#"
        guard ingestID.hasPrefix(head), let index = Int(ingestID.dropFirst(head.count)), ranges.indices.contains(index)
        else { return nil }
        return index
    }

    /// The members that the server assigns to a marker, and that an export of another session therefore contains.
    private static let given = [
        "id", "version", "created_at", "updated_at", "details", "calibrated_data", "work_session_id",
    ]

    /// Marker number `index` as sent: the file's members without those that the server assigns, plus its session and
    /// stamp.
    func marker(_ index: Int, session: String) -> JSONObject {
        // It was read once, so it can be read again.
        var fields = JSON.value(json[ranges[index]])?.object ?? [:]
        for name in Self.given { fields[name] = nil }
        for (name, value) in fields where value == .null { fields[name] = nil }
        var props = fields["custom_props"]?.object ?? [:]
        props[RoboscopeObject.ingestIDMember] = .string(ingestID(index))
        fields["custom_props"] = .object(props)
        fields["work_session_id"] = .string(session)
        return fields
    }
}

/// Checks a marker before it is sent: four corners of three finite numbers in metres, a colour `#RRGGBB`.
extension MarkerFile {
    static let corners = ["p1", "p2", "p3", "p4"]

    /// The faults, each continuing "the marker's …"; empty for a valid marker.
    static func objections(to marker: JSONValue) -> [String] {
        guard let fields = marker.object else { return ["value is not an object"] }
        var found = corners.compactMap { corner(fields[$0] ?? .null, $0) }
        if let color = fields["color"], color != .null, !isColor(color.string ?? "") {
            found.append("color is not like #FF8800")
        }
        if let label = fields["label"], label != .null, label.string == nil { found.append("label is not text") }
        for name in ["meta", "custom_props"] {
            if let value = fields[name], value != .null, value.object == nil {
                found.append("\(name) is not an object")
            }
        }
        return found
    }

    private static func corner(_ value: JSONValue, _ name: String) -> String? {
        if value == .null { return "\(name) is missing" }
        guard let items = value.array else { return "\(name) is not a list of three numbers" }
        guard items.count == 3 else { return "\(name) has \(items.count) numbers; three are needed" }
        return items.allSatisfy { $0.double != nil } ? nil : "\(name) holds something else than finite numbers"
    }

    static func isColor(_ text: String) -> Bool {
        text.utf8.count == 7 && text.hasPrefix("#") && text.dropFirst().allSatisfy { $0.isASCII && $0.isHexDigit }
    }
}
