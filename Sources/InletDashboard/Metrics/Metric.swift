internal import InletCore

// length: one switch over all metrics, so that one without a meaning does not compile
/// Every metric of `/metrics`, in the page's order. The raw value is its name, which never changes.
///
/// Seconds and bytes, as Prometheus expects; names that end in `_total` count from the agent's start.
enum Metric: String, CaseIterable, Sendable {
    case info = "inlet_info"
    case startTime = "inlet_start_time_seconds"
    case journalFailing = "inlet_journal_failing"
    case journalWrites = "inlet_journal_write_seconds"
    case files = "inlet_files"
    case fileBytes = "inlet_file_bytes"
    case filesEnded = "inlet_files_ended_total"
    case filesIgnored = "inlet_ignored_files"
    case queueWaiting = "inlet_queue_waiting"
    case oldestWaiting = "inlet_oldest_waiting_seconds"
    case deliveriesOpen = "inlet_deliveries_open"
    case deliveries = "inlet_deliveries_total"
    case deliveredBytes = "inlet_delivered_bytes_total"
    case deliveryDuration = "inlet_delivery_duration_seconds"
    case retries = "inlet_delivery_retries_total"
    case bytesInFlight = "inlet_transfer_bytes_in_flight"
    case destinationUp = "inlet_destination_up"
    case destinationState = "inlet_destination_state"
    case destinationPaused = "inlet_destination_paused"
    case limit = "inlet_limit_bytes_per_second"
    case rootUp = "inlet_root_up"
    case rootLastFile = "inlet_root_last_file_timestamp_seconds"
    case rootQuiet = "inlet_root_quiet"
    case settling = "inlet_settling_files"
    case watches = "inlet_watches"
    case polled = "inlet_polled_folders"
    case watchLimit = "inlet_watch_limit"
    case overflows = "inlet_watch_overflows_total"
    case resuming = "inlet_resuming_files"
    case resumed = "inlet_resumed_files"
    case recovered = "inlet_recovered_deliveries_total"
    case continued = "inlet_delivery_resumes_total"
    case fleetConnected = "inlet_fleet_connected"
    case fleetSessionLeft = "inlet_fleet_session_seconds_left"
    case fleetCallDuration = "inlet_fleet_call_seconds"
    case fleetCalls = "inlet_fleet_calls_total"
    case fleetKeysReserved = "inlet_fleet_keys_reserved_total"
    case fleetKeysLost = "inlet_fleet_keys_lost_total"
    case fleetKeysTagged = "inlet_fleet_keys_tagged_total"
    case fleetTakeovers = "inlet_fleet_takeovers_total"
    case fleetFenced = "inlet_fleet_fenced_total"
    case fleetPlacesHeld = "inlet_fleet_places_held"
    case fleetPlaceListed = "inlet_fleet_place_listed"
    case fleetReceiptsBehind = "inlet_fleet_receipts_behind"
    case fleetRecovering = "inlet_fleet_recovering"
    case residentMemory = "process_resident_memory_bytes"
    case openDescriptors = "process_open_fds"
    case processorTime = "process_cpu_seconds_total"

    enum Kind: String, Sendable {
        case counter
        case gauge
        case histogram
    }

    var kind: Kind {
        switch self {
        case .journalWrites, .deliveryDuration, .fleetCallDuration: .histogram
        default: rawValue.hasSuffix("_total") ? .counter : .gauge
        }
    }

    /// The names of its series' labels, in their order.
    var labels: [String] { meaning.labels }

    /// Its meaning in one line.
    var help: String { meaning.help }

    private var meaning: (labels: [String], help: String) {
        switch self {
        case .info: (["version"], "The version that runs, as a label.")
        case .startTime: ([], "Time of the agent's start, in seconds since 1970.")
        case .journalFailing: ([], "1 while the journal cannot be written, and nothing new is taken or sent.")
        case .journalWrites: ([], "Time until changes were on disk; many files share one.")
        case .files: (["state"], "Files that the journal knows, by state.")
        case .fileBytes: (["state"], "Bytes of the files that the journal knows, by state.")
        case .filesEnded:
            (
                ["route", "state"],
                "Files that ended since the start, by route and final state."
            )
        case .filesIgnored: ([], "Files of watched folders that no route takes, since the folder's watch began.")
        case .queueWaiting: ([], "Deliveries that wait for a worker or for their time.")
        case .oldestWaiting: ([], "Time since the admission of the file that has waited longest.")
        case .deliveriesOpen:
            (["destination", "state"], "Deliveries that have not ended, by destination and place in the queue.")
        case .deliveries:
            (
                ["destination", "result"],
                "Deliveries that ended since the start, with or without an attempt."
            )
        case .deliveredBytes: (["destination"], "Bytes of files delivered since the start.")
        case .deliveryDuration: (["destination"], "Duration of attempts that delivered a file.")
        case .retries: (["destination"], "Attempts that failed and will be repeated.")
        case .bytesInFlight: ([], "Full sizes of the files that are being sent now.")
        case .destinationUp:
            (["destination"], "1, or 0 while a destination is down, refuses its credentials, or has not answered yet.")
        case .destinationState:
            (["destination", "state"], "1 for the state that a destination's breaker is in, 0 for the others.")
        case .destinationPaused: (["destination"], "1 while a person has paused the destination.")
        case .limit:
            (
                ["destination"],
                "The bandwidth limit; * is for all destinations together. No series where there is no limit."
            )
        case .rootUp:
            (
                ["root"],
                "1 while a watched folder is listed or watched, 0 while it is missing, paused, or unreadable."
            )
        case .rootLastFile: (["root"], "Time of the last file's admission, in seconds since 1970.")
        case .rootQuiet: (["root"], "1 while no file came for longer than expect. No series without expect.")
        case .settling: (["root"], "Files that are not known to be complete yet.")
        case .watches: (["root"], "Watches of inotify in use; with fanotify a few cover all folders.")
        case .polled: (["root"], "Folders that are polled because the kernel reports no changes there.")
        case .watchLimit: ([], "The most folders that one user may watch (fs.inotify.max_user_watches).")
        case .overflows: ([], "Times that the kernel dropped events of a watched folder, which was then listed again.")
        case .resuming: ([], "Files that waited at the start and have not been tried since.")
        case .resumed: (["result"], "Files that waited at the start, by result.")
        case .recovered:
            ([], "Deliveries in progress when an earlier process ended, returned to the queue at the start.")
        case .continued: (["destination"], "Attempts that continued an earlier process's work.")
        case .fleetConnected:
            ([], "1 while the agent has a session in its fleet, 0 otherwise. No fleet series without fleet.")
        case .fleetSessionLeft: ([], "How long the session lasts if PostgreSQL is not reached again.")
        case .fleetCallDuration: (["function"], "Duration of calls to PostgreSQL, by function.")
        case .fleetCalls:
            (["code", "function"], "Calls to PostgreSQL, by function and result: ok, or an error's code.")
        case .fleetKeysReserved: ([], "Keys that PostgreSQL granted.")
        case .fleetKeysLost: ([], "Keys that another agent had, so that a file got its next name.")
        case .fleetKeysTagged: ([], "Files named with the agent's tag because no key was granted in time.")
        case .fleetTakeovers: ([], "Deliveries of other agents that this one went on with.")
        case .fleetFenced: ([], "Changes that were refused because another agent had the work.")
        case .fleetPlacesHeld: ([], "Shares that this agent lists.")
        case .fleetPlaceListed:
            (["place"], "1 while this agent lists the share, 0 while it does not. Summed over all agents it is 1.")
        case .fleetReceiptsBehind: ([], "Receipts that are not in the fleet yet.")
        case .fleetRecovering: ([], "1 while the fleet grants nothing because PostgreSQL lost commits.")
        case .residentMemory: ([], "Resident memory in bytes.")
        case .openDescriptors: ([], "Open file descriptors.")
        case .processorTime: ([], "CPU time used, in seconds.")
        }
    }
}

/// Metrics in the text format that Prometheus reads (exposition format 0.0.4). Families have the order of `Metric`,
/// series the order of their labels, so that two pages differ only in what has changed.
struct PrometheusText {
    /// Names and values, in the order in which they are written.
    typealias Labels = [(name: String, value: String)]

    enum Number: Sendable, Equatable {
        case whole(Int64)
        case real(Double)
        case histogram(Histogram)
    }

    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private var series: [Metric: [(labels: Labels, number: Number)]] = [:]

    /// Adds one series of a metric. No two have the same labels.
    mutating func add(_ metric: Metric, _ number: Number, _ labels: Labels = []) {
        series[metric, default: []].append((labels, number))
    }

    mutating func add(_ metric: Metric, _ number: Int, _ labels: Labels = []) {
        add(metric, .whole(Int64(number)), labels)
    }

    mutating func add(_ metric: Metric, _ flag: Bool, _ labels: Labels = []) {
        add(metric, .whole(flag ? 1 : 0), labels)
    }

    /// The page; metrics without a series are left out.
    var text: String {
        var text = ""
        for metric in Metric.allCases {
            guard let series = series[metric] else { continue }
            let name = metric.rawValue
            text +=
                "# HELP \(name) \(Self.escape(metric.help, quotes: false))\n# TYPE \(name) \(metric.kind.rawValue)\n"
            let sorted = series.sorted { left, right in
                left.labels.map(\.value).lexicographicallyPrecedes(right.labels.map(\.value))
            }
            for (labels, number) in sorted { Self.append(name, labels, number, to: &text) }
        }
        return text
    }

    private static func append(_ name: String, _ labels: Labels, _ number: Number, to text: inout String) {
        switch number {
        case .whole(let value): text += "\(name)\(format(labels)) \(value)\n"
        case .real(let value): text += "\(name)\(format(labels)) \(format(value))\n"
        case .histogram(let histogram):
            for (bound, count) in histogram.atMost {
                text += "\(name)_bucket\(format(labels + [("le", format(bound))])) \(count)\n"
            }
            text += "\(name)_bucket\(format(labels + [("le", "+Inf")])) \(histogram.count)\n"
            text += "\(name)_sum\(format(labels)) \(format(histogram.sum))\n"
            text += "\(name)_count\(format(labels)) \(histogram.count)\n"
        }
    }

    private static func format(_ labels: Labels) -> String {
        if labels.isEmpty { return "" }
        return "{" + labels.map { "\($0.name)=\"\(escape($0.value, quotes: true))\"" }.joined(separator: ",") + "}"
    }

    /// As Go's ParseFloat reads it, which uses other words than Swift for infinities and NaN.
    static func format(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        if let whole = Int64(exactly: value) { return String(whole) }
        return value.description
    }

    /// - Parameter quotes: whether quotation marks end the text, as they do that of a label.
    static func escape(_ text: String, quotes: Bool) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where quotes: escaped += "\\\""
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }
}
