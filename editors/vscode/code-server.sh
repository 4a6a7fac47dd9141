#!/usr/bin/env bash
# Builds code-server, a real VS Code in a browser, below a folder from npm alone: code-server.sh FOLDER
# Needs libkrb5-dev libx11-dev libxkbfile-dev libsecret-1-dev, a C++ compiler and Python; takes minutes and 900 MB.
set -euo pipefail
mkdir -p "$1/node" "$1/server"
folder=$(cd "$1" && pwd)
(cd "$folder/node" && npm init -y >/dev/null && npm install --no-audit --no-fund node@24)
export PATH=$folder/node/node_modules/.bin:$PATH
(cd "$folder/server" && npm init -y >/dev/null && npm install --ignore-scripts --no-audit --no-fund code-server)
cd "$folder/server/node_modules/code-server/lib/vscode"
npm install --omit=dev --ignore-scripts --no-audit --no-fund
for module in node-pty @vscode/spdlog @parcel/watcher @vscode/native-watchdog @vscode/sqlite3 kerberos @vscode/deviceid; do
  if [ -d "node_modules/$module" ]; then npm rebuild "$module" --foreground-scripts; fi
done
(cd extensions && npm install --omit=dev --ignore-scripts --no-audit --no-fund)
