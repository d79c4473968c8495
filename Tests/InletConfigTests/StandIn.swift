import InletConfig
import InletCore
import InletTestSupport
import SystemPackage
import Testing

/// Destination types as the pipelines define them, so that these tests need no pipeline.
let standInTypes = [
    DestinationType(
        name: "r2", summary: "An R2 bucket.",
        keys: [
            KeySpec("api", .string, required: true, "Address of the API."),
            KeySpec("dialect", .choice(["seed", "r2", "v1"]), default: "v1", "Generation of the API."),
            KeySpec("api_key", .secret, "The credential."),
            KeySpec("part_size", .bytes(orWord: "auto"), default: "auto", "Size of a part."),
            KeySpec("parallel_parts", .integer(1...64), default: "4", "Parts at once."),
            KeySpec("public_url", .string, "Where objects can be read."),
            KeySpec("verify", .choice(["md5", "size"]), default: "md5", "What is compared."),
            KeySpec("allow_http", .boolean, default: "false", "Allow plain HTTP."),
            KeySpec("ca_file", .path, "Certificates to trust."),
            KeySpec("connections", .integer(1...256), default: "32", "Small files at once."),
            KeySpec("max_in_flight", .integer(1...64), "Big files at once."),
        ] + networkKeys,
        fields: [
            FieldSpec("label", default: "{stem}", "What people see."), FieldSpec("on", "Where it was."),
            FieldSpec("title", "What it is called."),
        ], givesURLs: true),
    DestinationType(
        name: "s3", summary: "A bucket.",
        keys: [
            KeySpec("bucket", .string, required: true, "The bucket."),
            KeySpec("endpoint", .string, "Address of the store."),
            KeySpec("region", .string, default: "auto", "Region of signatures."),
            KeySpec("style", .choice(["auto", "path", "virtual"]), default: "auto", "Where the bucket stands."),
            KeySpec("access_key", .secret, "Access key."),
            KeySpec("secret_key", .secret, "Secret key."),
            KeySpec("session_token", .secret, "Session token."),
            KeySpec("profile", .string, "Profile."),
            KeySpec("credentials_file", .path, "Credentials file."),
            KeySpec("multipart_threshold", .bytes(orWord: nil), default: "16MiB", "One request up to here."),
            KeySpec("part_size", .bytes(orWord: "auto"), default: "auto", "Size of a part."),
            KeySpec("parallel_parts", .integer(1...64), default: "4", "Parts at once."),
            KeySpec("max_object_size", .bytes(orWord: nil), default: "5TiB", "The store's limit."),
            KeySpec(
                "verify", .choice(["auto", "crc64nvme", "crc32c", "sha256", "md5", "size"]), default: "auto",
                "What is compared."),
            KeySpec(
                "if_exists", .choice(["overwrite", "skip-same", "version", "fail"]), default: "overwrite",
                "When the key is taken."),
            KeySpec("storage_class", .string, "Storage class."),
            KeySpec("cache_control", .string, "Cache-Control."),
            KeySpec("metadata", .map(.string), "User metadata."),
            KeySpec("acl", .string, "Canned ACL."),
            KeySpec("public_url", .string, "Where objects can be read."),
            KeySpec("allow_http", .boolean, default: "false", "Allow plain HTTP."),
            KeySpec("ca_file", .path, "Certificates to trust."),
            KeySpec("connections", .integer(1...256), default: "32", "Small files at once."),
            KeySpec("max_in_flight", .integer(1...64), "Big files at once."),
        ] + networkKeys, givesURLs: true),
    DestinationType(
        name: "folder", summary: "A folder.",
        keys: [
            KeySpec("path", .path, required: true, "The folder."),
            KeySpec("verify", .choice(["read-back", "size"]), default: "read-back", "What is compared."),
            KeySpec("min_free", .bytes(orWord: nil), default: "0", "Space that must stay free."),
        ], folderKey: "path"),
    gigHiveStandIn, vopiStandIn, roboscopeStandIn,
]

/// What all that go over the network have.
let networkKeys = BandwidthKeys().specs + [ProxyKeys.key().spec]

private let gigHiveStandIn = DestinationType(
    name: "gighive", summary: "A GigHive server.",
    keys: [
        KeySpec("url", .string, required: true, "Its address."), KeySpec("user", .string, "The user."),
        KeySpec("password", .secret, "The password."), KeySpec("upload_token", .secret, "A guest's token."),
        KeySpec("tos_accepted", .boolean, default: "false", "Accept the terms."),
        KeySpec("display_name", .string, "The guest's name."),
        KeySpec("transport", .choice(["auto", "multipart", "tus"]), default: "auto", "The way."),
        KeySpec("chunk_size", .bytes(orWord: nil), default: "8MiB", "A request."),
        KeySpec("multipart_limit", .bytes(orWord: nil), default: "64MiB", "The largest form."),
        KeySpec("max_upload_bytes", .bytes(orWord: nil), default: "6442450944", "The server's limit."),
        KeySpec("max_in_flight", .integer(1...16), default: "2", "Files at once."),
        KeySpec("finalize_for", .duration(offAllowed: false), default: "15m", "How long to ask."),
        KeySpec("pin", .string, "The server's key."), KeySpec("ca_file", .path, "Certificates to trust."),
        KeySpec("allow_http", .boolean, default: "false", "Allow plain HTTP."),
    ] + networkKeys,
    fields: [
        FieldSpec("label", default: "{stem}", "What people see."), FieldSpec("org_name", default: "Band", "Who."),
        FieldSpec("event_date", default: "{mtime:yyyy-MM-dd}", "When."),
        FieldSpec("event_type", default: "band", "What."), FieldSpec("keywords", "Words to find it by."),
    ], takesSidecars: false)

let standInEnvironment = [
    "SPIRAL_KEY": "canary-spiral", "MAIN_KEY": "canary-main", "SECOND_KEY": "canary-second", "CANARY": "canary-value",
    "API_HOST": "storage.example", "EMPTY": "", "S3_ACCESS_KEY": "canary-access", "S3_SECRET_KEY": "canary-s3",
    "GIGHIVE_PASSWORD": "canary-gighive", "VOPI_KEY": "canary-vopi", "HOOK_SECRET": "canary-hook",
    "ROBOSCOPE_TOKEN": "canary-roboscope",
]

/// A place where no file is.
let standInDefaults = ConfigDefaults(
    stateDirectory: "/var/lib/inlet", home: "/nowhere/user", workingDirectory: "/nowhere")

/// One folder, one route and one destination, on a line each: what stands behind the folder and the route, and below.
func small(_ below: String = "", path: String = "/srv/drop", watch: String = "", route: String = "") -> String {
    """
    destinations: { lib: { type: folder, path: /lib } }
    watch: [{ path: \(path)\(watch) }]
    routes: [{ name: all, to: lib\(route) }]
    \(below)
    """
}

func parse(_ text: String, file: FilePath = "inlet.yaml") throws(ConfigErrors) -> LoadedConfig {
    try ConfigFile.parse(
        text: text.utf8, file: file, types: standInTypes, environment: standInEnvironment, defaults: standInDefaults)
}

/// What is wrong with `text`, as printed; an empty text when nothing is.
func complaints(_ text: String) -> String { complaints(Array(text.utf8), file: "inlet.yaml") }

func complaints(_ bytes: [UInt8], file: FilePath) -> String {
    do throws(ConfigErrors) {
        _ = try ConfigFile.parse(
            text: bytes, file: file, types: standInTypes, environment: standInEnvironment, defaults: standInDefaults)
        return ""
    } catch {
        return error.description
    }
}

let vopiStandIn = DestinationType(
    name: "vopi", summary: "A VOPI server.",
    keys: [
        KeySpec("url", .string, required: true, "Its address."),
        KeySpec(
            "auth",
            .section([KeySpec("api_key", .secret, "A key."), KeySpec("refresh_token_file", .path, "A login.")]),
            required: true, "How to log in."),
        KeySpec("poll", .duration(offAllowed: false), default: "3s", "How often to look."),
        KeySpec("results", .path, required: true, "Where pictures go."),
        KeySpec("job", .section(jobKeys), "What jobs are like."),
        KeySpec("callback_url", .string, "Where it calls back."),
        KeySpec("soft_limit", .duration(offAllowed: false), default: "1h", "Long."),
        KeySpec("hard_limit", .duration(offAllowed: false), default: "6h", "Too long."),
        KeySpec("no_progress", .duration(offAllowed: false), default: "60s", "A stall."),
        KeySpec("max_in_flight", .integer(1...64), default: "2", "Videos at once."),
        KeySpec("ca_file", .path, "Certificates to trust."),
        KeySpec("allow_http", .boolean, default: "false", "Allow plain HTTP."),
    ] + networkKeys,
    fields: [
        "fps", "batch_size", "commercial_versions", "ai_cleanup", "gemini_model", "stack_id", "callback_url",
        "estimated_duration",
    ].map { FieldSpec($0, "Of a job.") }, takesSidecars: false)

private let jobKeys = [
    KeySpec("fps", .integer(1...30), "Frames per second."), KeySpec("batch_size", .integer(1...100), "At once."),
    KeySpec("commercial_versions", .list(.choice(["transparent", "solid", "real", "creative"])), "Pictures."),
    KeySpec("ai_cleanup", .boolean, "Clean up."), KeySpec("gemini_model", .string, "The model."),
    KeySpec("stack", .choice(["classic", "frames_only"]), "The processors."),
]

let roboscopeStandIn = DestinationType(
    name: "roboscope", summary: "A Roboscope server.",
    keys: [
        KeySpec("url", .string, required: true, "Its address."),
        KeySpec("storage", .string, required: true, "Where files are stored."),
        KeySpec("token", .secret, "Its token."),
        KeySpec("chunk", .integer(1...1000), default: "100", "Markers at once."),
        KeySpec("presence", .boolean, default: "true", "Be seen."),
        KeySpec("locks", .boolean, default: "true", "Lock."),
        KeySpec("allow_http", .boolean, default: "false", "Allow plain HTTP."),
        KeySpec("ca_file", .path, "Certificates to trust."),
        KeySpec("connections", .integer(1...64), default: "8", "At once."),
    ] + networkKeys,
    fields: [
        FieldSpec("space", default: "{folder[1]}", "Which space."), FieldSpec("name", "Its name."),
        FieldSpec("session_type", default: "inspection", "What kind."), FieldSpec("session_status", "How it ends."),
        FieldSpec("role", default: "auto", "What the file is."),
    ], takesSidecars: false)
